package webhookdedup

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// listOptions are the flags of `list`.
type listOptions struct {
	adminOptions
	state, provider, prefix, eventID, cursor string
	limit                                    int
	all                                      bool
}

func newListCommand() *cobra.Command {
	o := new(listOptions)
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "Lists the events that the stores of a running Caddy know",
		Long: `Lists records, in no particular order: their state, how often the event was given to the application
(attempts), how many deliveries were answered without it (duplicates), the application's last status,
and the key. It shows up to --limit of them; where there are more, it says with which --cursor to go
on. --all goes on by itself. The store is read a page at a time, and goes on serving deliveries.

A record may be listed twice where the store is being written to meanwhile.

Exit status: 0 they are listed, also where there are none; ` + adminExitStatuses,
		Example: `  caddy webhook-dedup list --state failed
  caddy webhook-dedup list --provider stripe --limit 20
  caddy webhook-dedup list --prefix :github:hooks.example.com/
  caddy webhook-dedup list --state processing --all --json | jq -r .key`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.state, "state", "", "only those that are processing, processed or failed")
	flags.StringVarP(&o.provider, "provider", "p", "", "only those of a provider")
	flags.StringVar(&o.prefix, "prefix", "", "only those whose key begins so")
	flags.StringVar(&o.eventID, "event-id", "", "only those with this event ID, encoded as in the key")
	flags.IntVar(&o.limit, "limit", 100, "how many, at most 1000")
	flags.StringVar(&o.cursor, "cursor", "", "go on where an earlier list ended")
	flags.BoolVar(&o.all, "all", false, "list all there are")
	o.addFlags(cmd, "print each record as JSON, one a line")
	return cmd
}

func (o *listOptions) run(cmd *cobra.Command) error {
	ctx, stop := untilInterrupted(cmd)
	defer stop()
	query, err := o.query()
	if err != nil {
		return usageError(cmd, err)
	}
	client, err := o.client()
	if err != nil {
		return o.fail(cmd, ctx, err)
	}
	out := newScreen(cmd.OutOrStdout())
	shown, next, failed := 0, "", error(nil)
	err = client.eachPage(ctx, query, func(page pageJSON) bool {
		if len(page.Events) > 0 {
			failed = o.print(out, page.Events, shown == 0)
		}
		shown += len(page.Events)
		if next = page.Cursor; o.all {
			return failed == nil
		}
		// A store may give back fewer than it was asked for.
		query.Set("limit", strconv.Itoa(o.limit-shown))
		return failed == nil && shown < o.limit
	})
	switch {
	case err != nil:
		return o.fail(cmd, ctx, err)
	case failed != nil:
		return exitWith(cmd, exitFailed, failed)
	case next != "" && !o.all:
		fmt.Fprintf(cmd.ErrOrStderr(), "There may be more: --cursor %s goes on, --all lists all.\n", next)
	case shown == 0 && !o.asJSON:
		fmt.Fprintln(cmd.ErrOrStderr(), "No such records.")
	}
	return nil
}

// print prints one page. Columns are aligned within it, as no page waits for the next.
func (o *listOptions) print(out *screen, events []eventJSON, first bool) error {
	if o.asJSON {
		for _, e := range events {
			if err := printJSONLine(out, e); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, 0, len(events)+1)
	if first {
		printEventTable(out, events)
		return nil
	}
	for _, e := range events {
		rows = append(rows, eventRow(e))
	}
	for _, line := range alignColumns(rows) {
		fmt.Fprintln(out, line)
	}
	return nil
}

// query checks the flags, so that a mistake is one of usage even where no Caddy runs.
func (o *listOptions) query() (url.Values, error) {
	if o.state != "" {
		if _, err := claim.ParseState(o.state); err != nil {
			return nil, fmt.Errorf("--state: %w", err)
		}
	}
	if o.limit < 1 || o.limit > 1000 {
		return nil, fmt.Errorf("--limit is %d; allowed are 1 to 1000, and --all lists all", o.limit)
	}
	if o.all {
		o.limit = 1000
	}
	query := url.Values{"limit": {strconv.Itoa(o.limit)}}
	for name, value := range map[string]string{
		"state": o.state, "provider": o.provider, "prefix": o.prefix, "event_id": o.eventID, "cursor": o.cursor,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query, nil
}
