package webhookdedup

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// oneEvent refuses anything but one argument.
func oneEvent(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usageError(cmd, fmt.Errorf("%s takes one key or event ID; got %d arguments", cmd.Name(), len(args)))
	}
	return nil
}

func newInspectCommand() *cobra.Command {
	o := new(adminOptions)
	cmd := &cobra.Command{
		Use:   "inspect <key or event ID> [flags]",
		Short: "Tells what is known of an event: whether it was processed, how often it ran and came",
		Long: `Asks a running Caddy for the record of an event: its state, how often it was given to the application
(attempts), how many deliveries were answered without (duplicates), when, and with which status.

The event is named by its ID as the provider shows it, or by its key, which is
environment:provider:scope:event_id. An ID may have several keys, as an event that is sent to several
endpoints is an event of each; all are listed then. A key is found at once; for an ID the store is
searched, a page at a time.

Exit status: 0 it is there; 1 there is no record of it; ` + adminExitStatuses,
		Example: `  caddy webhook-dedup inspect evt_1PgafmB7WZ01zgkW
  caddy webhook-dedup inspect :stripe:hooks.example.com/stripe:evt_1PgafmB7WZ01zgkW
  caddy webhook-dedup inspect evt_1PgafmB7WZ01zgkW --json | jq .attempts
  caddy webhook-dedup inspect evt_1PgafmB7WZ01zgkW --address unix//run/caddy/admin.sock`,
		Args: oneEvent,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupted(cmd)
			defer stop()
			client, err := o.client()
			if err != nil {
				return o.fail(cmd, ctx, err)
			}
			events, err := client.findEvents(ctx, args[0])
			if err != nil {
				return o.fail(cmd, ctx, err)
			}
			return o.printEvents(cmd, events)
		},
	}
	o.addFlags(cmd, "print each record as JSON, one a line")
	return cmd
}

// printEvents prints what was found: one record in full, several as a table.
func (o *adminOptions) printEvents(cmd *cobra.Command, events []eventJSON) error {
	out := newScreen(cmd.OutOrStdout())
	switch {
	case o.asJSON:
		for _, e := range events {
			if err := printJSONLine(out, e); err != nil {
				return err
			}
		}
	case len(events) == 1:
		printEvent(out, events[0])
	default:
		printEventTable(out, events)
		fmt.Fprintf(out, "\n%d keys have this event ID. Name one by its key to see all of it.\n", len(events))
	}
	return nil
}

func newForgetCommand() *cobra.Command {
	o := new(adminOptions)
	var force bool
	cmd := &cobra.Command{
		Use:   "forget <key or event ID> [flags]",
		Short: "Removes the record of an event, so that its next delivery is processed",
		Long: `Removes the record of an event from the store. The application will get the event's next delivery,
also where it has processed it before: forget an event to have it processed again, then let the
provider send it again. Caddy logs who forgot what.

An event ID that has several keys is not forgotten: the keys are listed, and one has to be named.

An event that is being processed is not forgotten either, unless --force says so. Its next delivery
is then processed beside the run that is under way, so that the application may process the event
twice; and when that run ends well, the event counts as processed again.

Exit status: 0 it is forgotten; 1 there is no record of it, or it was refused; ` + adminExitStatuses,
		Example: `  caddy webhook-dedup forget :stripe:hooks.example.com/stripe:evt_1PgafmB7WZ01zgkW
  caddy webhook-dedup forget evt_1PgafmB7WZ01zgkW
  caddy webhook-dedup forget evt_1PgafmB7WZ01zgkW --force`,
		Args: oneEvent,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.forget(cmd, args[0], force)
		},
	}
	o.addFlags(cmd, "print the record that was forgotten as JSON")
	cmd.Flags().BoolVar(&force, "force", false, "also while it is being processed, at the risk of it being processed twice")
	return cmd
}

func (o *adminOptions) forget(cmd *cobra.Command, keyOrID string, force bool) error {
	ctx, stop := untilInterrupted(cmd)
	defer stop()
	client, err := o.client()
	if err != nil {
		return o.fail(cmd, ctx, err)
	}
	events, err := client.findEvents(ctx, keyOrID)
	if err != nil {
		return o.fail(cmd, ctx, err)
	}
	if len(events) > 1 {
		printEventTable(newScreen(cmd.ErrOrStderr()), events)
		return exitWith(cmd, exitFailed, fmt.Errorf("%d keys have this event ID; nothing was forgotten. Name one by its key", len(events)))
	}
	target := eventPath + url.PathEscape(events[0].Key)
	if force {
		target += "?force=true"
	}
	var forgotten eventJSON
	if err := client.do(ctx, http.MethodDelete, target, &forgotten); err != nil {
		return o.fail(cmd, ctx, err)
	}
	out := newScreen(cmd.OutOrStdout())
	if o.asJSON {
		return printJSONLine(out, forgotten)
	}
	fmt.Fprintf(out, "Forgotten: %s (%s; attempts: %d, duplicates: %d).\nIts next delivery will be processed: let the provider send it again.\n",
		printable(forgotten.Key), forgotten.State, forgotten.Attempts, forgotten.Duplicates)
	return nil
}
