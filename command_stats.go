package webhookdedup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func newStatsCommand() *cobra.Command {
	o := new(adminOptions)
	cmd := &cobra.Command{
		Use:   "stats [flags]",
		Short: "Counts the events by provider and state, and says how the stores are",
		Long: `Counts the records of all stores of a running Caddy by provider and state, and tells whether each store
answers and how fast, since when the longest run has held its claim without a renewal, and how many
completions no store has confirmed yet. Counting reads all records, a batch at a time.

Exit status: 0 all stores are well; ` + adminExitStatuses,
		Example: `  caddy webhook-dedup stats
  caddy webhook-dedup stats --json | jq '.providers.stripe.failed'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilInterrupted(cmd)
			defer stop()
			client, err := o.client()
			if err != nil {
				return o.fail(cmd, ctx, err)
			}
			var stats statsJSON
			if err := client.get(ctx, "stats", &stats); err != nil {
				return o.fail(cmd, ctx, err)
			}
			if out := newScreen(cmd.OutOrStdout()); o.asJSON {
				if err := printAsJSON(out, stats); err != nil {
					return err
				}
			} else {
				printStats(out, stats)
			}
			if slices.ContainsFunc(stats.Stores, func(s storeStatsJSON) bool { return !s.Healthy }) {
				return exitWith(cmd, exitStore, errors.New("a store failed; the counts are without its records. See that it runs and that Caddy reaches it"))
			}
			return nil
		},
	}
	o.addFlags(cmd, "print them as JSON")
	return cmd
}

func printStats(out *screen, stats statsJSON) {
	states := []string{claim.Processed.String(), claim.Failed.String(), claim.Processing.String()}
	for _, counts := range stats.Providers {
		for state := range counts {
			if !slices.Contains(states, state) {
				states = append(states, state)
			}
		}
	}
	head := []string{"PROVIDER"}
	for _, state := range states {
		head = append(head, strings.ToUpper(state))
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(stats.Providers)) {
		row := []string{printable(name)}
		for _, state := range states {
			row = append(row, strconv.FormatInt(stats.Providers[name][state], 10))
		}
		rows = append(rows, row)
	}
	printTable(out, head, rows)
	fmt.Fprintln(out)
	rows = nil
	for _, s := range stats.Stores {
		if s.Healthy {
			rows = append(rows, []string{"store " + s.Store, fmt.Sprintf("answers in %.3g ms", s.LatencyMS)})
		} else {
			rows = append(rows, []string{"store " + s.Store, "FAILED: " + printable(s.Error)})
		}
	}
	oldest := "-"
	if stats.OldestProcessing != nil {
		oldest = timeAndAge(*stats.OldestProcessing)
	}
	rows = append(rows, []string{"oldest claim", oldest}, []string{"pending completions", strconv.Itoa(stats.PendingCompletions)})
	for _, line := range alignColumns(rows) {
		fmt.Fprintln(out, line)
	}
}
