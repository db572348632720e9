//go:build unix

package webhookdedup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// mute is a webhook_dedup handler that logs, counts and remembers nothing, for comparison.
type mute struct{ Handler }

func (mute) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.mute_webhook_dedup", New: func() caddy.Module { return new(mute) }}
}

func (m *mute) Provision(ctx caddy.Context) error {
	if err := m.Handler.Provision(ctx); err != nil {
		return err
	}
	shared := m.store.acquire()
	defer m.store.release()
	opened, err := shared.open()
	if err != nil {
		return err
	}
	if timed, ok := opened.(*measured); ok {
		shared.store = timed.Store
	}
	m.logger, m.limited, m.sampled, m.recent = zap.NewNop(), zap.NewNop(), zap.NewNop(), nil
	m.metrics = &handlerMetrics{deliveries: map[result]prometheus.Counter{}, failedFirst: uncounted{}, failedRetry: uncounted{},
		processing: uncounted{}, leaseLost: uncounted{}, outcomeUnknown: uncounted{}, inFlight: uncounted{}, waiting: uncounted{}, payloadChanged: uncounted{}}
	return nil
}

// uncounted is a metric that is none.
type uncounted struct{ prometheus.Gauge }

func (uncounted) Inc()            {}
func (uncounted) Dec()            {}
func (uncounted) Observe(float64) {}

func init() {
	caddy.RegisterModule(mute{})
	httpcaddyfile.RegisterHandlerDirective("mute_webhook_dedup", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		m := new(mute)
		return m, m.UnmarshalCaddyfile(h.Dispenser)
	})
	httpcaddyfile.RegisterDirectiveOrder("mute_webhook_dedup", httpcaddyfile.Before, "invoke")
}

// BenchmarkOverhead compares, in turn within one run, a route that observes nothing with the same route with the
// module's logging and metrics, then with spans on Caddy's tracing directive and with Caddy's access log as well. One
// operation is a round of deliveries on each of them. What is reported is, in per cent of the route that observes nothing,
// the median over the rounds of the throughput, and the processor time: that includes clients and application, which are
// the same for all, and is the steadier figure where others use the machine, too.
//
//	go test -run - -bench Overhead -benchtime 30x .
//
// Every span is exported, to a collector in this same process, unless OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG
// say otherwise, as they do to Caddy. "tracing-only" is what Caddy's directive costs by itself.
func BenchmarkOverhead(b *testing.B) {
	for _, store := range []string{"memory", "file"} {
		b.Run(store, func(b *testing.B) { benchmarkOverhead(b, store) })
	}
}

func benchmarkOverhead(b *testing.B, storeName string) {
	const clients, deliveries = 16, 4000 // of a round on one route
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer app.Close()
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	b.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	b.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	b.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // so that a round pays for its own spans
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)

	proxy := "reverse_proxy " + app.Listener.Addr().String()
	// Each route has a store of its own, so that all are of the same size.
	guard := func(directive, name string) string {
		store := "memory {\nname " + name + "\n}"
		if storeName == "file" {
			store = "file {\npath " + filepath.Join(dir, name+".db") + "\n}"
		}
		return directive + " stripe {\nsecret {env.STRIPE_SECRET}\nstore " + store + "\n}\n" + proxy
	}
	accessLog := "log {\noutput file " + filepath.Join(dir, "access.log") + "\n}\n"
	routes := []struct{ name, block string }{
		{"nothing", guard("mute_webhook_dedup", "a")},
		{"nothing-again", guard("mute_webhook_dedup", "b")}, // how exact the figures are
		{"module", guard("webhook_dedup", "c")},
		{"tracing-only", "tracing\n" + guard("mute_webhook_dedup", "d")},
		{"module+tracing", "tracing\n" + guard("webhook_dedup", "e")},
		{"module+tracing+access-log", "tracing\n" + accessLog + guard("webhook_dedup", "f")},
	}
	text := "{\nadmin off\nauto_https off\npersist_config off\nlog default {\noutput file " + filepath.Join(dir, "log") + "\n}\n}\n"
	for i, route := range routes {
		text += fmt.Sprintf("http://hooks%d.example.com {\nbind unix/%s\n%s\n}\n", i, filepath.Join(dir, fmt.Sprint(i)), route.block)
	}
	config, err := adapt(text)
	if err != nil {
		b.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		b.Fatal(err)
	}
	defer caddy.Stop()
	spec, _ := provider.Lookup("stripe")
	compiled, err := provider.Compile(spec)
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	processor := func() time.Duration {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			b.Fatal(err)
		}
		return time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	round := func(i int) (elapsed, used time.Duration) {
		socket := filepath.Join(dir, fmt.Sprint(i))
		transport := &http.Transport{MaxIdleConnsPerHost: clients, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}
		defer transport.CloseIdleConnections()
		requests := make([]*http.Request, deliveries)
		for j := range requests {
			d := provider.Delivery{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}},
				Body: fmt.Appendf(nil, `{"id":"evt_%d","type":"charge.succeeded","data":"%02000d"}`, next.Add(1), 0)}
			if err := compiled.Sign(&d, testSecret, time.Now()); err != nil {
				b.Fatal(err)
			}
			requests[j], _ = http.NewRequest(d.Method, fmt.Sprintf("http://hooks%d.example.com/", i), bytes.NewReader(d.Body))
			requests[j].Header = d.Header
		}
		runtime.GC() // so that no route pays for the one before it
		var at atomic.Int64
		var all sync.WaitGroup
		started, before := time.Now(), processor()
		for range clients {
			all.Go(func() {
				for {
					j := int(at.Add(1)) - 1
					if j >= deliveries {
						return
					}
					res, err := transport.RoundTrip(requests[j])
					if err != nil || res.StatusCode != http.StatusOK || res.Header.Get(resultHeader) != string(resultProcessed) {
						b.Errorf("%s: %v %v", routes[i].name, res, err)
						return
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			})
		}
		all.Wait()
		elapsed = time.Since(started)
		time.Sleep(200 * time.Millisecond) // for the last spans
		return elapsed, processor() - before
	}

	for i := range routes {
		round(i) // warms up
	}
	elapsed, used := make([][]float64, len(routes)), make([][]float64, len(routes))
	for range b.N {
		for _, i := range rand.Perm(len(routes)) {
			e, u := round(i)
			elapsed[i], used[i] = append(elapsed[i], e.Seconds()), append(used[i], u.Seconds())
		}
	}
	// Each round is compared with the one of the same turn, which had the same neighbours on the machine.
	for i := 1; i < len(routes); i++ {
		throughput, processor := make([]float64, b.N), make([]float64, b.N)
		for n := range b.N {
			throughput[n] = 100 * elapsed[0][n] / elapsed[i][n]
			processor[n] = 100 * used[i][n] / used[0][n]
		}
		b.ReportMetric(median(throughput), "%throughput:"+routes[i].name)
		b.ReportMetric(median(processor), "%cpu:"+routes[i].name)
	}
	b.ReportMetric(deliveries/median(elapsed[0]), "deliveries/s")
	b.ReportMetric(0, "ns/op") // means nothing here
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
