package webhookdedup

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	watchEvery   = 500 * time.Millisecond
	watchPatient = 30 * time.Second // with an endpoint that has answered before
)

// watchOptions are the flags of `watch`.
type watchOptions struct {
	adminOptions
	provider, only string // only is a result
	length         durationFlag

	out    *screen
	before map[result]uint64 // the totals when the last counts were printed
	since  time.Time         // when that was
	status bool              // the terminal's last line is the counts
}

func newWatchCommand() *cobra.Command {
	o := new(watchOptions)
	cmd := &cobra.Command{
		Use:   "watch [flags]",
		Short: "Shows deliveries as they come, with counts a second",
		Long: `Shows the deliveries that one running Caddy gets, whatever becomes of them, and how many of each result
there are a second. It begins with the last ones; Caddy remembers ` + strconv.Itoa(maxRecent) + `. Where more come than can be
shown, it says how many were left out; the counts have them all. It ends when it is interrupted, or
after --for.

The results are those of the Webhook-Dedup header: processed, failed, duplicate, in_flight,
invalid_signature, missing_id, too_large, bad_request, not_allowed, overloaded, store_error, passed,
unguarded.

Exit status: 0 it was interrupted, or --for is over; ` + adminExitStatuses,
		Example: `  caddy webhook-dedup watch
  caddy webhook-dedup watch --provider stripe --result failed
  caddy webhook-dedup watch --for 10s --json | jq -r 'select(.result == "failed") | .key'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.provider, "provider", "p", "", "only deliveries of a provider")
	flags.StringVar(&o.only, "result", "", "only deliveries with this result")
	flags.Var(&o.length, "for", "end after this time")
	o.addFlags(cmd, "print each delivery as JSON, one a line, and {\"per_second\":…} for the counts")
	return cmd
}

func (o *watchOptions) run(cmd *cobra.Command) error {
	if o.only != "" && !slices.Contains(results, result(o.only)) {
		return usageError(cmd, fmt.Errorf("--result: there is no %q; allowed are %s", o.only, resultWords()))
	}
	if o.length < 0 {
		return usageError(cmd, errors.New("--for is negative"))
	}
	ctx, stop := untilInterrupted(cmd)
	defer stop()
	if o.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.length))
		defer cancel()
	}
	client, err := o.client()
	if err != nil {
		return o.fail(cmd, context.Background(), err)
	}
	o.out = newScreen(cmd.OutOrStdout())
	answered, cursor := time.Time{}, ""
	for {
		var page recentJSON
		err := client.get(ctx, "deliveries?limit="+strconv.Itoa(maxRecent)+"&after="+url.QueryEscape(cursor), &page)
		switch {
		case ctx.Err() != nil:
			o.clear()
			return nil
		case err != nil && time.Since(answered) > watchPatient:
			o.clear()
			return o.fail(cmd, ctx, err)
		case err == nil:
			if cursor == "" {
				page.Deliveries = page.Deliveries[max(0, len(page.Deliveries)-10):]
			}
			answered, cursor = time.Now(), page.Cursor
			if err := o.show(page); err != nil {
				return exitWith(cmd, exitFailed, err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchEvery):
		}
	}
}

func resultWords() string {
	words := make([]string, len(results))
	for i, r := range results {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

// show prints the deliveries of one answer and, about once a second, the counts.
func (o *watchOptions) show(page recentJSON) error {
	for _, d := range page.Deliveries {
		if o.provider != "" && d.Provider != o.provider || o.only != "" && d.Result != o.only {
			continue
		}
		if err := o.showDelivery(d); err != nil {
			return err
		}
	}
	if page.Missed > 0 && !o.asJSON {
		o.clear()
		fmt.Fprintln(o.out, o.out.style(styleDim, fmt.Sprintf("… %d deliveries are not shown: they came too fast", page.Missed)))
	}
	now := time.Now()
	if o.before == nil {
		o.before, o.since = page.Totals, now
		return nil
	}
	if now.Sub(o.since) < time.Second-watchEvery/4 {
		return nil
	}
	err := o.showCounts(page.Totals, now)
	o.before, o.since = page.Totals, now
	return err
}

func (o *watchOptions) showDelivery(d deliveryJSON) error {
	if o.asJSON {
		return printJSONLine(o.out, d)
	}
	o.clear()
	id := d.EventID
	if id == "" {
		id = "-"
	}
	line := fmt.Sprintf("%s  %s  %s  %s", d.Time.Local().Format("15:04:05.000"), o.out.style(resultStyle(d.Result), pad(d.Result, 17)),
		pad(printable(d.Provider), 10), printable(id))
	if d.EventType != "" {
		line += "  " + printable(d.EventType)
	}
	if d.Attempt > 0 {
		line += "  attempt " + strconv.Itoa(d.Attempt)
	}
	if d.UpstreamStatus > 0 {
		line += fmt.Sprintf("  %d in %.3g ms", d.UpstreamStatus, d.UpstreamMS)
	}
	if d.Mode == modeObserve {
		line += "  observed"
	}
	if d.Error != "" {
		line += "  " + printable(d.Error)
	}
	_, err := fmt.Fprintln(o.out, line)
	return err
}

func resultStyle(word string) string {
	switch r := result(word); {
	case r == resultProcessed:
		return styleGreen
	case r == resultDuplicate, r == resultInFlight, r == resultPassed:
		return styleDim
	}
	return styleRed
}

// showCounts prints the deliveries a second since the last counts: as the terminal's last line, and elsewhere as a line
// where there is something to count.
func (o *watchOptions) showCounts(totals map[result]uint64, now time.Time) error {
	seconds := now.Sub(o.since).Seconds()
	rates, all := map[result]float64{}, 0.0
	for word, n := range totals {
		if n > o.before[word] {
			rates[word] = float64(int64(float64(n-o.before[word])/seconds*10+0.5)) / 10
			all += rates[word]
		}
	}
	if o.asJSON {
		return printJSONLine(o.out, map[string]any{"time": now.UTC(), "per_second": rates})
	}
	line := fmt.Sprintf("-- %s  %.4g/s", now.Format("15:04:05"), all)
	for _, word := range results {
		if rates[word] > 0 {
			line += fmt.Sprintf("  %s %.4g", word, rates[word])
		}
	}
	o.clear()
	switch {
	case o.out.terminal:
		fmt.Fprint(o.out, o.out.style(styleBold, line))
		o.status = true
	case all > 0:
		fmt.Fprintln(o.out, line)
	}
	return nil
}

// clear takes the counts off the terminal's last line.
func (o *watchOptions) clear() {
	if o.status {
		fmt.Fprint(o.out, "\r\x1b[K")
		o.status = false
	}
}
