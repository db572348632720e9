// Command picture runs the observability example for a few minutes, lets its application and its senders misbehave, and
// draws the dashboard's queries from what Prometheus has recorded meanwhile. It is a drawing of that data, not of
// Grafana's screen.
//
//	go run ./examples/observability/picture -folder examples/observability -out docs/dashboard.svg
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/examples/observability/stage"
)

func main() {
	folder := flag.String("folder", ".", "the example's folder")
	out := flag.String("out", "dashboard.svg", "the file to write")
	phase := flag.Duration("phase", 40*time.Second, "how long each of the story's six parts lasts")
	flag.Parse()
	if err := run(*folder, *out, *phase); err != nil {
		log.Fatal(err)
	}
}

func run(folder, out string, phase time.Duration) error {
	panels, err := stage.Dashboard(folder + "/dashboard.json")
	if err != nil {
		return err
	}
	s, err := stage.Start(folder)
	if err != nil {
		return err
	}
	defer s.Close()
	prometheus, err := s.Prometheus(folder, time.Second)
	if err != nil {
		return err
	}
	const settle = 15 * time.Second // until the first rates are whole
	play(s, story[:1], settle)
	from := time.Now()
	play(s, story, phase)
	to := time.Now()

	drawing := newDrawing(from, to, fmt.Sprintf("webhook_dedup, %s of real data: %s", to.Sub(from).Round(time.Second), titles()))
	for _, panel := range panels {
		var lines []stage.Series
		var names []string
		for _, q := range panel.Queries {
			series, err := prometheus.Range(q.Filled("10s"), from, to, time.Second)
			if err != nil {
				return err
			}
			for _, line := range series {
				lines = append(lines, line)
				names = append(names, legend(q.Legend, line.Labels))
			}
		}
		drawing.panel(panel, lines, names)
	}
	return os.WriteFile(out, drawing.bytes(), 0o644)
}

// part is a part of the story: what the application does, and how events come.
type part struct {
	title      string
	takes      time.Duration // of a run
	fails      float64       // share of runs
	duplicates int           // redeliveries of each event that was processed, in turn
	atOnce     int           // further deliveries of each event while it is being processed
	forged     float64       // share of deliveries
}

var story = []part{
	{title: "steady", takes: 4 * time.Millisecond, fails: .01},
	{title: "a provider redelivers", takes: 4 * time.Millisecond, fails: .01, duplicates: 2},
	{title: "the application fails", takes: 2 * time.Millisecond, fails: .6},
	{title: "forged deliveries", takes: 4 * time.Millisecond, fails: .01, forged: .5},
	{title: "a slow application, impatient providers", takes: 900 * time.Millisecond, fails: .01, atOnce: 2},
	{title: "steady again", takes: 4 * time.Millisecond, fails: .01},
}

func titles() string {
	text := ""
	for i, p := range story {
		if i > 0 {
			text += " · "
		}
		text += p.title
	}
	return text
}

// play lets each part last for a time. Events come 20 times a second; those that failed come again a little later.
func play(s *stage.Stage, parts []part, length time.Duration) {
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	for _, p := range parts {
		app := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(p.takes/2 + rand.N(p.takes))
			if rand.Float64() < p.fails {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		s.App.Store(&app)
		for end := time.Now().Add(length); time.Now().Before(end); {
			time.Sleep(25*time.Millisecond + rand.N(50*time.Millisecond))
			name := "stripe"
			if rand.IntN(3) == 0 {
				name = "github"
			}
			id := fmt.Sprintf("evt_%x", rand.Uint64())
			for range 1 + p.atOnce {
				deliveries.Go(func() { deliver(s, p, name, id) })
			}
		}
	}
}

// deliver sends one event as a provider does: again after a while where it was not acknowledged.
func deliver(s *stage.Stage, p part, name, id string) {
	if rand.Float64() < p.forged {
		if _, err := s.Deliver(name, id, true); err != nil {
			log.Print(err)
		}
		return
	}
	for range 4 {
		result, err := s.Deliver(name, id, false)
		if err != nil {
			log.Print(err)
		}
		if result != "failed" {
			break
		}
		time.Sleep(2*time.Second + rand.N(3*time.Second))
	}
	for range p.duplicates {
		time.Sleep(rand.N(3 * time.Second))
		if _, err := s.Deliver(name, id, false); err != nil {
			log.Print(err)
		}
	}
}
