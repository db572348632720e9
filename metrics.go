package webhookdedup

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// collectors are the module's metrics. They live as long as the process, so that a reload, which makes a new registry,
// loses no count.
type collectors struct {
	deliveries       *prometheus.CounterVec
	upstreamFailures *prometheus.CounterVec
	processing       *prometheus.HistogramVec
	storeSeconds     *prometheus.HistogramVec
	storeErrors      *prometheus.CounterVec
	leaseLost        *prometheus.CounterVec
	outcomeUnknown   *prometheus.CounterVec
	inFlight         *prometheus.GaugeVec
	waiting          *prometheus.GaugeVec
	payloadChanged   *prometheus.CounterVec
	pending          prometheus.Gauge
}

var metrics = sync.OnceValue(func() *collectors {
	const namespace, subsystem = "caddy", "webhook_dedup"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: buckets,
		}, labels)
	}
	return &collectors{
		deliveries:       counter("deliveries_total", "Deliveries by what became of them.", "provider", "result", "mode"),
		upstreamFailures: counter("upstream_failures_total", "Runs of the application that did not acknowledge the event, by whether it was the event's first run.", "provider", "attempt"),
		processing: histogram("processing_seconds", "How long runs of the application took.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}, "provider"),
		storeSeconds: histogram("store_seconds", "How long operations of the store took.",
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}, "store", "op"),
		storeErrors:    counter("store_errors_total", "Operations of the store that failed, so that their outcome is unknown.", "store", "op"),
		leaseLost:      counter("lease_lost_total", "Runs whose claim was lost before their outcome was recorded.", "provider"),
		outcomeUnknown: counter("outcome_unknown_total", "Runs whose answer did not arrive whole, so that the application may have processed the event.", "provider"),
		inFlight:       gauge("in_flight", "Runs of the application under a claim.", "provider"),
		waiting:        gauge("waiting", "Deliveries that wait for another delivery of their event.", "provider"),
		payloadChanged: counter("payload_changed_total", "Redeliveries whose body differs from that of the event's first delivery.", "provider"),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: "pending_completions",
			Help: "Completions that the store has not confirmed yet."}),
	}
})

// register adds the metrics to the registry of a configuration. Every handler does so; the first one wins.
func (c *collectors) register(registry *prometheus.Registry) error {
	for _, collector := range []prometheus.Collector{c.deliveries, c.upstreamFailures, c.processing, c.storeSeconds, c.storeErrors,
		c.leaseLost, c.outcomeUnknown, c.inFlight, c.waiting, c.payloadChanged, c.pending} {
		var already prometheus.AlreadyRegisteredError
		if err := registry.Register(collector); err != nil && !errors.As(err, &already) {
			return err
		}
	}
	return nil
}

// handlerMetrics are the metrics of one handler, with its labels filled in once.
type handlerMetrics struct {
	deliveries     map[result]prometheus.Counter
	failedFirst    prometheus.Counter
	failedRetry    prometheus.Counter
	processing     prometheus.Observer
	leaseLost      prometheus.Counter
	outcomeUnknown prometheus.Counter
	inFlight       prometheus.Gauge
	waiting        prometheus.Gauge
	payloadChanged prometheus.Counter
}

func newHandlerMetrics(provider, mode string) *handlerMetrics {
	c := metrics()
	m := &handlerMetrics{
		deliveries:     map[result]prometheus.Counter{},
		failedFirst:    c.upstreamFailures.WithLabelValues(provider, "first"),
		failedRetry:    c.upstreamFailures.WithLabelValues(provider, "retry"),
		processing:     c.processing.WithLabelValues(provider),
		leaseLost:      c.leaseLost.WithLabelValues(provider),
		outcomeUnknown: c.outcomeUnknown.WithLabelValues(provider),
		inFlight:       c.inFlight.WithLabelValues(provider),
		waiting:        c.waiting.WithLabelValues(provider),
		payloadChanged: c.payloadChanged.WithLabelValues(provider),
	}
	for _, r := range results {
		m.deliveries[r] = c.deliveries.WithLabelValues(provider, string(r), mode)
	}
	return m
}

// failed counts a run that did not acknowledge the event.
func (m *handlerMetrics) failed(attempt int) {
	if attempt <= 1 {
		m.failedFirst.Inc()
	} else {
		m.failedRetry.Inc()
	}
}

// measured is a store that tells how long its operations take and how many fail.
type measured struct {
	claim.Store
	claims, renewals, completions, releases, gets operation
}

type operation struct {
	seconds prometheus.Observer
	errors  prometheus.Counter
}

func measure(store claim.Store, name string) *measured {
	op := func(op string) operation {
		return operation{metrics().storeSeconds.WithLabelValues(name, op), metrics().storeErrors.WithLabelValues(name, op)}
	}
	return &measured{store, op("claim"), op("renew"), op("complete"), op("release"), op("get")}
}

// done observes one operation. An answer of the protocol is no error.
func (o *operation) done(started time.Time, err error) {
	o.seconds.Observe(time.Since(started).Seconds())
	if err != nil && !isAnswer(err) {
		o.errors.Inc()
	}
}

func (m *measured) Claim(ctx context.Context, c claim.Claim) (claim.ClaimOutcome, claim.Record, error) {
	started := time.Now()
	outcome, record, err := m.Store.Claim(ctx, c)
	m.claims.done(started, err)
	return outcome, record, err
}

func (m *measured) Renew(ctx context.Context, r claim.Renewal) error {
	started := time.Now()
	err := m.Store.Renew(ctx, r)
	m.renewals.done(started, err)
	return err
}

func (m *measured) Complete(ctx context.Context, c claim.Completion) (claim.CompleteOutcome, error) {
	started := time.Now()
	outcome, err := m.Store.Complete(ctx, c)
	m.completions.done(started, err)
	return outcome, err
}

func (m *measured) Release(ctx context.Context, r claim.Release) (claim.ReleaseOutcome, error) {
	started := time.Now()
	outcome, err := m.Store.Release(ctx, r)
	m.releases.done(started, err)
	return outcome, err
}

func (m *measured) Get(ctx context.Context, key string) (claim.Record, error) {
	started := time.Now()
	record, err := m.Store.Get(ctx, key)
	m.gets.done(started, err)
	return record, err
}
