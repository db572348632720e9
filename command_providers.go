package webhookdedup

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func newProvidersCommand() *cobra.Command {
	var o catalogueOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "providers [<name>] [flags]",
		Short: "Tells what is known of each provider",
		Long: `Lists all providers, one a line, the name for the configuration first:

  signature   the algorithm that signs deliveries
  event ID    where the ID is that stays the same over redeliveries; +2: with two more parts, as for scopes
  retries     for how long the provider retries by itself what was not acknowledged
  timeout     after how long it hangs up
  ttl         how long an event is remembered by default

A ? is something that the provider does not publish.

With a name it tells all that is known of that provider: how deliveries are signed and identified,
when they are repeated, what receivers get wrong, where all this was found out, and what was not
confirmed; and how to configure it.

Providers of your own are listed with the configuration that --config names.

Exit status: 0 it is printed; 2 there is no such provider, or a flag or a file is wrong.`,
		Example: `  caddy webhook-dedup providers
  caddy webhook-dedup providers stripe
  caddy webhook-dedup providers --json | jq -r '.[].id'
  caddy webhook-dedup providers acme --config Caddyfile`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(cmd, fmt.Errorf("one name at a time, or none; got %d", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if len(args) == 1 {
				err = printProvider(newScreen(cmd.OutOrStdout()), &o, args[0], asJSON)
			} else {
				err = printProviders(newScreen(cmd.OutOrStdout()), &o, asJSON)
			}
			if err != nil {
				return usageError(cmd, err)
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, spec := range provider.All() {
				names = append(names, spec.ID)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything that is known, as JSON")
	return cmd
}

func printProvider(out *screen, o *catalogueOptions, name string, asJSON bool) error {
	spec, err := o.lookup(name)
	if err != nil {
		return err
	}
	if asJSON {
		return printAsJSON(out, newProviderFacts(spec))
	}
	describeProvider(out, spec)
	return nil
}

func printProviders(out *screen, o *catalogueOptions, asJSON bool) error {
	specs, err := o.all()
	if err != nil {
		return err
	}
	if asJSON {
		all := make([]providerFacts, len(specs))
		for i, spec := range specs {
			all[i] = newProviderFacts(spec)
		}
		return printAsJSON(out, all)
	}
	var rows [][]string
	if out.terminal { // a program that reads the lines wants no heading among them
		rows = append(rows, []string{"NAME", "PROVIDER", "SIGNATURE", "EVENT ID", "RETRIES", "TIMEOUT", "TTL"})
	}
	for _, s := range specs {
		rows = append(rows, []string{
			s.ID, s.Title, algorithmsOf(s), shortID(s), retriesFor(s), known(s.ResponseTimeout), known(s.TTL),
		})
	}
	for i, line := range alignColumns(rows) {
		if i == 0 && out.terminal {
			line = out.style(styleBold, line)
		}
		fmt.Fprintln(out, line)
	}
	return nil
}

func printAsJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func alignColumns(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			b.WriteString(pad(cell, widths[j]+2))
		}
		lines[i] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// algorithmsOf lists each algorithm once.
func algorithmsOf(s provider.Spec) string {
	var names []string
	seen := map[string]bool{}
	for _, scheme := range s.Schemes {
		if !seen[scheme.Algorithm] {
			seen[scheme.Algorithm] = true
			names = append(names, scheme.Algorithm)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// shortID is where the ID proper is: the last part, which the others only qualify.
func shortID(s provider.Spec) string {
	if len(s.EventID) == 0 {
		return "none"
	}
	last := s.EventID[len(s.EventID)-1]
	if len(last) == 0 {
		return "none"
	}
	text := sourceName(s, last[0])
	if more := len(s.EventID) - 1; more > 0 {
		text += " +" + strconv.Itoa(more)
	}
	return text
}

// sourceName is a source without its kind: a path starts with $, or is a header's name.
func sourceName(s provider.Spec, src provider.Source) string {
	switch src.From {
	case provider.FromSignedID:
		for _, scheme := range s.Schemes {
			if scheme.IDHeader != "" {
				return scheme.IDHeader
			}
		}
		return "the signed ID"
	case provider.FromBody:
		return "body digest"
	case provider.FromForm, provider.FromQuery:
		return src.From + " " + src.Name
	}
	return src.Name
}

func retriesFor(s provider.Spec) string {
	if !s.Retry.Automatic {
		return "none"
	}
	return known(s.Retry.Window)
}

// known is a duration that may not be known, to within an hour where it is longer than a day.
func known(d time.Duration) string {
	if d == 0 {
		return "?"
	}
	if d > 24*time.Hour {
		d = d.Round(time.Hour)
	}
	return shortDuration(d)
}
