package webhookdedup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The demo's times. The provider's patience is shorter than the slow run, as it is with the slow applications that
// this is made for; only less so, for the sake of whoever watches.
const (
	demoShortRun = 200 * time.Millisecond
	demoSlowRun  = 1500 * time.Millisecond
	demoHangUp   = 500 * time.Millisecond
	demoPatience = 10 * time.Second
)

// scene is a part of the demo: the deliveries of one event, and what came of them.
type scene struct {
	title string
	event string
	does  demoTask

	deliveries []sceneDelivery
	together   bool // all at once
	forged     bool // signed with another secret

	// want checks what the table can't: the runs, and deliveries in any order.
	want func(s *scene) error
	runs []demoRun
}

// sceneDelivery is one delivery of a scene and what the provider was told.
type sceneDelivery struct {
	what     string
	patience time.Duration
	status   int    // wanted; 0: no answer before the provider hangs up. Not used where want looks at them all
	result   result // wanted
	got      attempt
}

func demoScenes() []*scene {
	copies := make([]sceneDelivery, 5)
	for i := range copies {
		copies[i] = sceneDelivery{what: "copy " + strconv.Itoa(i+1), patience: demoPatience}
	}
	return []*scene{
		{
			title:      "Five copies of one event at once; the application takes " + seconds(demoShortRun),
			event:      "evt_demo_copies",
			does:       demoTask{takes: demoShortRun},
			deliveries: copies,
			together:   true,
			want:       wantOneProcessed,
		},
		{
			title: fmt.Sprintf("The provider hangs up after %s; the application takes %s, and is not interrupted", seconds(demoHangUp), seconds(demoSlowRun)),
			event: "evt_demo_slow",
			does:  demoTask{takes: demoSlowRun},
			deliveries: []sceneDelivery{
				{what: "delivery", patience: demoHangUp},
				{what: "retry while it is at work", patience: demoPatience, status: http.StatusOK, result: resultDuplicate},
			},
			want: wantRuns(http.StatusOK),
		},
		{
			title: "The application fails with 500; the retry gets a second run",
			event: "evt_demo_failure",
			does:  demoTask{failFirst: http.StatusInternalServerError},
			deliveries: []sceneDelivery{
				{what: "delivery", patience: demoPatience, status: http.StatusInternalServerError, result: resultFailed},
				{what: "retry", patience: demoPatience, status: http.StatusOK, result: resultProcessed},
				{what: "one more retry", patience: demoPatience, status: http.StatusOK, result: resultDuplicate},
			},
			want: wantRuns(http.StatusInternalServerError, http.StatusOK),
		},
		{
			title:      "Somebody forges an event, not knowing the secret",
			event:      "evt_demo_forged",
			forged:     true,
			deliveries: []sceneDelivery{{what: "delivery", patience: demoPatience, status: http.StatusUnauthorized, result: resultInvalidSignature}},
			want:       wantRuns(),
		},
		{
			title:      "A new event",
			event:      "evt_demo_new",
			deliveries: []sceneDelivery{{what: "delivery", patience: demoPatience, status: http.StatusOK, result: resultProcessed}},
			want:       wantRuns(http.StatusOK),
		},
	}
}

// play plays all scenes and reports whether each ended as it should.
func (d *demo) play(ctx context.Context, out *screen) (bool, error) {
	fmt.Fprintln(out, out.style(styleBold, sceneLine("WHAT THE PROVIDER DID", "WHAT IT WAS TOLD", "AFTER", "WHAT THE APPLICATION DID")))
	var problems []string
	deliveries, genuine := 0, 0
	scenes := demoScenes()
	for i, s := range scenes {
		if err := d.playScene(ctx, s); err != nil {
			return false, err
		}
		wrong := s.problems()
		s.print(out, i+1, wrong)
		problems = append(problems, wrong...)
		deliveries += len(s.deliveries)
		if !s.forged {
			genuine++
		}
	}
	if running := d.app.stillRunning(); running != 0 {
		problems = append(problems, fmt.Sprintf("%d runs of the application have not ended", running))
	}
	if len(problems) > 0 {
		fmt.Fprintln(out, out.style(styleRed, "NOT AS IT SHOULD BE:"))
		for _, p := range problems {
			fmt.Fprintln(out, "  - "+p)
		}
		return false, nil
	}
	fmt.Fprintln(out, out.style(styleGreen, fmt.Sprintf(
		"As it should be: of %d deliveries, %d genuine events were processed once each, the forged one never.", deliveries, genuine)))
	fmt.Fprintln(out, out.style(styleDim, "An endpoint of your own is tried in the same way by: caddy webhook-dedup send --help"))
	return true, nil
}

func (d *demo) playScene(ctx context.Context, s *scene) error {
	d.app.expect(s.event, s.does)
	senders := make([]*sender, len(s.deliveries))
	for i, delivery := range s.deliveries {
		var err error
		if senders[i], err = d.sender(s.event, delivery.patience); err != nil {
			return err
		}
		if s.forged {
			senders[i].secret = "whsec_" + rand.Text()
		}
	}
	if s.together {
		for i, got := range sendTogether(ctx, senders) {
			s.deliveries[i].got = got
		}
	} else {
		for i, sender := range senders {
			s.deliveries[i].got = sender.send(ctx, nil)
		}
	}
	s.runs = d.app.ran(s.event)
	return ctx.Err()
}

// sendTogether lets all senders make their deliveries at the same moment.
func sendTogether(ctx context.Context, senders []*sender) []attempt {
	got := make([]attempt, len(senders))
	ready := make(chan struct{})
	var sending sync.WaitGroup
	for i, s := range senders {
		sending.Go(func() { got[i] = s.send(ctx, ready) })
	}
	close(ready)
	sending.Wait()
	return got
}

// wantOneProcessed: one copy is processed, whichever it is; the others wait for it and are duplicates.
func wantOneProcessed(s *scene) error {
	processed := 0
	for i := range s.deliveries {
		got := &s.deliveries[i].got
		if got.err != nil || got.status != http.StatusOK || got.result != string(resultProcessed) && got.result != string(resultDuplicate) {
			return fmt.Errorf("%s was told %s, not 200 processed or 200 duplicate", s.deliveries[i].what, told(*got))
		}
		if got.result == string(resultProcessed) {
			processed++
		}
	}
	if processed != 1 {
		return fmt.Errorf("%d copies were processed, not 1", processed)
	}
	return wantRuns(http.StatusOK)(s)
}

// wantRuns: the application had a run that ended with each of the statuses, in this order, and no other.
func wantRuns(statuses ...int) func(s *scene) error {
	return func(s *scene) error {
		if len(s.runs) != len(statuses) {
			return fmt.Errorf("the application ran %d times, not %d", len(s.runs), len(statuses))
		}
		for i, run := range s.runs {
			switch {
			case !run.finished:
				return fmt.Errorf("run %d did not come to its end", i+1)
			case run.status != statuses[i]:
				return fmt.Errorf("run %d ended with %d, not %d", i+1, run.status, statuses[i])
			case run.attempt != strconv.Itoa(i+1):
				return fmt.Errorf("run %d was called attempt %q", i+1, run.attempt)
			}
		}
		return nil
	}
}

// problems are the ways in which the scene did not end as it should.
func (s *scene) problems() []string {
	var all []string
	for i := range s.deliveries {
		d := &s.deliveries[i]
		switch {
		case s.together: // want looks at them
		case d.result == "" && !errors.Is(d.got.err, errHungUp):
			all = append(all, fmt.Sprintf("%s: the %s was told %s before the provider hung up", s.event, d.what, told(d.got)))
		case d.result != "" && (d.got.err != nil || d.got.status != d.status || d.got.result != string(d.result)):
			all = append(all, fmt.Sprintf("%s: the %s was told %s, not %d %s", s.event, d.what, told(d.got), d.status, d.result))
		}
	}
	if err := s.want(s); err != nil {
		all = append(all, s.event+": "+err.Error())
	}
	return all
}

// print writes the scene's rows: on the left the deliveries, on the right the application's runs.
func (s *scene) print(out *screen, number int, wrong []string) {
	fmt.Fprintf(out, "%s\n", out.style(styleBold, fmt.Sprintf("%d  %s", number, s.title)))
	runs := s.runLines()
	for i := range max(len(s.deliveries), len(runs)) {
		var what, answer, after, run string
		if i < len(s.deliveries) {
			d := &s.deliveries[i]
			what, answer, after = "   "+d.what, told(d.got), took(d.got.took)
		}
		if i < len(runs) {
			run = runs[i]
		}
		fmt.Fprintln(out, sceneLine(what, answer, after, run))
	}
	if len(wrong) == 0 {
		fmt.Fprintf(out, "   %s\n\n", out.style(styleGreen, "ok"))
		return
	}
	for _, w := range wrong {
		fmt.Fprintf(out, "   %s\n", out.style(styleRed, "WRONG "+w))
	}
	fmt.Fprintln(out)
}

func (s *scene) runLines() []string {
	lines := []string{plural(len(s.runs), "run", "runs")}
	for _, run := range s.runs {
		end := "broken off"
		if run.finished {
			end = "finished"
		}
		lines = append(lines, fmt.Sprintf("attempt %s: %s, %d (%s)", run.attempt, end, run.status, took(run.took)))
	}
	return lines
}

// sceneLine is a row of the table, within 100 columns.
func sceneLine(what, answer, after, app string) string {
	return strings.TrimRight(pad(what, 32)+pad(answer, 24)+pad(after, 9)+app, " ")
}

// told is what the provider was told, in words.
func told(a attempt) string {
	switch {
	case errors.Is(a.err, errHungUp):
		return "nothing: it hung up"
	case a.err != nil:
		return "nothing: " + a.err.Error()
	}
	return strings.TrimSpace(strconv.Itoa(a.status) + " " + a.result)
}

// seconds writes a duration that somebody chose, and took one that was measured.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

func took(d time.Duration) string {
	if d < time.Millisecond {
		return "<1 ms"
	}
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
