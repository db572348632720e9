package webhookdedup

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testsecrets"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

const ownProviders = `webhook_dedup {
	store memory
	provider acme {
		signature hmac-sha256 {
			header X-Acme-Signature
			content "{timestamp}.{url}.{header:X-Acme-Kind}.{http.request.method}.{body}"
			timestamp header X-Acme-Timestamp
		}
		id header X-Acme-Id
	}
	provider opaque {
		signature token {
			header X-Opaque-Token
		}
		id json $.event.id
	}
}`

// ownSecret is the secret of a provider that does not take base64Secret.
func ownSecret(t *testing.T, name string) (testsecrets.Pair, bool) {
	t.Helper()
	spec, ok := provider.Lookup(name)
	if !ok {
		return testsecrets.Pair{}, false
	}
	compiled, err := provider.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	pair := testsecrets.Of(name)
	_, err = compiled.Key(base64Secret)
	return pair, err != nil || pair.PEM != nil
}

// guardedEndpoint is an endpoint for every provider of the catalogue and two own ones, each at /<provider>.
func guardedEndpoint(t *testing.T, app *app, more string) string {
	t.Helper()
	var block strings.Builder
	names := []string{"acme", "opaque"}
	for _, spec := range provider.All() {
		names = append(names, spec.ID)
	}
	for _, name := range names {
		lines := "secret {env.STRIPE_SECRET}\n" + more
		if pair, own := ownSecret(t, name); own {
			variable := "SECRET_OF_" + name
			t.Setenv(variable, pair.Verify)
			lines = "secret {env." + variable + "}\n" + more
			if pair.PEM != nil {
				file := filepath.Join(t.TempDir(), "certificate.pem")
				if err := os.WriteFile(file, pair.PEM, 0o600); err != nil {
					t.Fatal(err)
				}
				lines += "\ncertificate " + file
			}
		}
		fmt.Fprintf(&block, "handle /%s {\nwebhook_dedup %s {\n%s\n}\nreverse_proxy {app}\n}\n", name, name, lines)
	}
	block.WriteString("handle /unguarded {\nreverse_proxy {app}\n}\n")
	return endpoint(t, app, ownProviders, block.String())
}

// base64Secret is one for every scheme: Stripe takes it as it is, Svix as base64.
const base64Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestSend(t *testing.T) {
	t.Setenv("STRIPE_SECRET", base64Secret)
	t.Setenv(secretEnv, base64Secret)
	dir := t.TempDir()
	config := filepath.Join(dir, "Caddyfile")
	secretFile, wrongSecret := filepath.Join(dir, "secret"), filepath.Join(dir, "wrong")
	for name, content := range map[string]string{
		config:      "{\n" + ownProviders + "\n}\n",
		secretFile:  base64Secret + "\n",
		wrongSecret: "whsec_d3Jvbmc=",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		path   string
		args   string
		stdin  string
		answer func(http.ResponseWriter, *http.Request)
		code   int
		out    string
		runs   int
	}{
		{name: "one", path: "/stripe", args: "--provider stripe", out: "OK: it was processed", runs: 1},
		{name: "three in turn", path: "/stripe", args: "--provider stripe --copies 3", out: "OK: exactly one was processed, 2 were duplicates", runs: 1},
		{name: "twenty at once", path: "/stripe", args: "--provider stripe --copies 20 --concurrent", out: "19 were duplicates", runs: 1},
		{name: "an ID of one's own", path: "/github", args: "--provider github --id abc-123", out: "github event 292430182:abc-123 to", runs: 1},
		{name: "the secret in a file", path: "/stripe", args: "--provider stripe --secret-file " + secretFile, out: "OK", runs: 1},
		{name: "the secret from stdin", path: "/stripe", args: "--provider stripe --secret-file -", stdin: base64Secret, out: "OK", runs: 1},
		{name: "a flag is stronger than the environment", path: "/stripe", args: "--provider stripe --secret whsec_d3Jvbmc=", code: 1, out: "Is it the endpoint's secret"},
		{name: "tampered", path: "/stripe", args: "--provider stripe --tamper --copies 2", out: "OK: all 2 were refused with 401"},
		{name: "too old", path: "/svix", args: "--provider svix --age 6m", out: "OK: refused with 401"},
		{name: "too far ahead", path: "/svix", args: "--provider svix --age -6m", out: "OK: refused with 401"},
		{name: "old, within the tolerance", path: "/svix", args: "--provider svix --age 4m", out: "OK: it was processed", runs: 1},
		{name: "the wrong secret, as expected", path: "/stripe", args: "--provider stripe --expect refused --secret-file " + wrongSecret, out: "OK: refused with 401"},
		{name: "refusal expected in vain", path: "/stripe", args: "--provider stripe --expect refused", code: 1, out: "should have been refused was accepted", runs: 1},
		{name: "no webhook_dedup there", path: "/unguarded", args: "--provider stripe", code: 1, out: "No Webhook-Dedup header", runs: 1},
		{name: "nothing of webhook_dedup refuses", path: "/nowhere", args: "--provider stripe --tamper", code: 1, out: "FAILED: expected every delivery to be refused"},
		{name: "the application fails", path: "/stripe", args: "--provider stripe", answer: status(500), code: 1, out: "did not acknowledge", runs: 1},
		{name: "the wrong provider", path: "/github", args: "--provider stripe", code: 1, out: "refused"},
		{name: "no answer in time", path: "/stripe", args: "--provider stripe --timeout 100ms", code: 1, out: "hung up after 100ms without an answer", runs: 1,
			answer: func(http.ResponseWriter, *http.Request) { time.Sleep(400 * time.Millisecond) }},
		{name: "a header more", path: "/stripe", args: "--provider stripe --header X-More:yes", out: "OK", runs: 1},
		{name: "a Host header of its own", path: "/stripe", args: "--provider stripe -H Host:hooks.example.com", code: 1, out: "No Webhook-Dedup header"},
		{name: "an own provider that signs its URL", path: "/acme", args: "--provider acme -H X-Acme-Kind:order --copies 2 --config " + config, out: "OK", runs: 1},
		{name: "another public URL than the endpoint's", path: "/acme", args: "--provider acme -H X-Acme-Kind:order --public-url https://example.com --config " + config, code: 1, out: "The signature was refused."},
		{name: "an own provider with a token", path: "/opaque", args: "--provider opaque --copies 2 --config " + config, out: "OK", runs: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := newApp(t, c.answer)
			url := guardedEndpoint(t, app, "")
			args := append([]string{"send", "--url", url + c.path}, strings.Fields(c.args)...)
			got := runCommand(t, t.Context(), c.stdin, args...)
			got.want(t, c.code, c.out, "")
			app.wantRuns(t, c.runs)
			if strings.Contains(got.out+got.stderr, "whsec_") || strings.Contains(got.out+got.stderr, "v1=") {
				t.Fatalf("a secret or a signature was printed:\n%s%s", got.out, got.stderr)
			}
			if strings.Contains(c.args, "X-More") && app.all()[0].header.Get("X-More") != "yes" {
				t.Fatal("the header did not arrive")
			}
			app.await(t, c.runs, true)
		})
	}
}

// TestSendAsEveryProvider: the sample of each entry of the catalogue is accepted, identified and deduplicated.
func TestSendAsEveryProvider(t *testing.T) {
	t.Setenv("STRIPE_SECRET", base64Secret)
	t.Setenv(secretEnv, base64Secret)
	app := newApp(t, nil)
	url := guardedEndpoint(t, app, "")
	for _, spec := range provider.All() {
		t.Run(spec.ID, func(t *testing.T) {
			before := len(app.all())
			if pair, own := ownSecret(t, spec.ID); own {
				t.Setenv(secretEnv, pair.Sign)
			}
			got := runCommand(t, t.Context(), "", "send", "--provider", spec.ID, "--url", url+"/"+spec.ID, "--copies", "3", "--concurrent")
			if len(spec.EventID) == 0 && spec.Batch == nil { // equal bytes may be different events
				got.want(t, exitFailed, "passed", "")
				app.wantRuns(t, before+3)
				return
			}
			got.want(t, 0, "2 were duplicates", "")
			app.wantRuns(t, before+1)
			key := app.all()[before].key
			if _, id, _ := strings.Cut(key, ":"); spec.Batch == nil && (id == "" || !strings.Contains(got.out, "event "+id+" to ")) {
				t.Fatalf("the application was told key %q:\n%s", key, got.out)
			}
			tampered := runCommand(t, t.Context(), "", "send", "--provider", spec.ID, "--url", url+"/"+spec.ID, "--tamper")
			if slices.ContainsFunc(spec.Schemes, leavesBodyUnsigned) {
				tampered.want(t, exitUsage, "", "would not be noticed")
			} else {
				tampered.want(t, 0, "OK: refused", "")
			}
			app.wantRuns(t, before+1)
		})
	}
}

func TestSendTwiceTheSameEvent(t *testing.T) {
	t.Setenv("STRIPE_SECRET", base64Secret)
	t.Setenv(secretEnv, base64Secret)
	app := newApp(t, nil)
	args := []string{"send", "--provider", "stripe", "--url", guardedEndpoint(t, app, "") + "/stripe", "--id", "evt_1", "--copies", "2"}
	runCommand(t, t.Context(), "", args...).want(t, 0, "OK: exactly one was processed, 1 was a duplicate", "")
	runCommand(t, t.Context(), "", args...).want(t, exitFailed, "was processed before this command ran", "")
	runCommand(t, t.Context(), "", append(args, "--expect", "duplicate")...).want(t, 0, "OK: the event was processed before; 2 deliveries", "")
	app.wantRuns(t, 1)
}

func TestSendToAnObservingEndpoint(t *testing.T) {
	t.Setenv("STRIPE_SECRET", base64Secret)
	t.Setenv(secretEnv, base64Secret)
	app := newApp(t, nil)
	got := runCommand(t, t.Context(), "", "send", "--provider", "stripe", "--url", guardedEndpoint(t, app, "mode observe")+"/stripe", "--copies", "2")
	got.want(t, exitFailed, "mode observe", "")
	app.wantRuns(t, 2)
}

func TestSendJSON(t *testing.T) {
	t.Setenv("STRIPE_SECRET", base64Secret)
	t.Setenv(secretEnv, base64Secret)
	app := newApp(t, nil)
	url := guardedEndpoint(t, app, "")
	for _, c := range []struct {
		name       string
		args       []string
		code       int
		asExpected bool
	}{
		{"as expected", []string{"--url", url + "/stripe?token=hush"}, 0, true},
		{"not as expected", []string{"--url", url + "/unguarded"}, exitFailed, false},
		{"nobody there", []string{"--url", "http://127.0.0.1:1/"}, exitFailed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runCommand(t, t.Context(), "", append([]string{"send", "--provider", "stripe", "--id", "evt_" + c.name[:2], "--json"}, c.args...)...)
			var out struct {
				Provider   string `json:"provider"`
				URL        string `json:"url"`
				EventID    string `json:"event_id"`
				AsExpected bool   `json:"as_expected"`
				Verdict    string `json:"verdict"`
				Deliveries []struct {
					Status int    `json:"status"`
					Result string `json:"result"`
					Error  string `json:"error"`
				} `json:"deliveries"`
			}
			if err := json.Unmarshal([]byte(got.out), &out); err != nil {
				t.Fatalf("%v in:\n%s", err, got.out)
			}
			if got.code != c.code || out.AsExpected != c.asExpected || out.Provider != "stripe" || out.EventID != "evt_"+c.name[:2] || out.Verdict == "" {
				t.Fatalf("status %d, printed:\n%s", got.code, got.out)
			}
			if d := out.Deliveries; len(d) != 1 || (d[0].Status == 0) == (d[0].Error == "") {
				t.Fatalf("deliveries %+v", d)
			}
			if strings.Contains(got.out, "hush") {
				t.Fatalf("the query was printed:\n%s", got.out)
			}
		})
	}
}

func TestSendWhereNobodyListens(t *testing.T) {
	for _, more := range []string{"--copies=3", "--concurrent"} {
		t.Run(more, func(t *testing.T) {
			before := runtime.NumGoroutine()
			got := runCommand(t, t.Context(), "", "send", "--provider", "stripe", "--secret", "x", "--url", "http://127.0.0.1:1/", more)
			got.want(t, exitFailed, "connection refused", "no connection to 127.0.0.1:1")
			if strings.Count(got.out, "refused") != 1 {
				t.Fatalf("it went on after the first one:\n%s", got.out)
			}
			goroutines(t, before)
		})
	}
}

func TestSendIsInterrupted(t *testing.T) {
	t.Setenv("STRIPE_SECRET", base64Secret)
	release := make(chan struct{})
	app := newApp(t, func(http.ResponseWriter, *http.Request) { <-release })
	url := guardedEndpoint(t, app, "")
	for _, how := range []string{"--concurrent=false", "--concurrent=true"} {
		t.Run(how, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			runCommand(t, ctx, "", "send", "--provider", "stripe", "--secret", base64Secret, "--url", url+"/stripe", "--copies=3", how).
				want(t, exitInterrupted, "", "interrupted")
		})
	}
	close(release)
	app.await(t, 2, true)
}

func TestSendReplaysWhatWasCaptured(t *testing.T) {
	t.Setenv("STRIPE_SECRET", base64Secret)
	t.Setenv(secretEnv, base64Secret)
	const body = `{"id":"evt_captured","type":"charge.succeeded"}`
	for _, c := range []struct {
		name    string
		file    string
		args    string
		url     string
		method  string
		wantKey string
		check   func(*testing.T, run)
	}{
		{name: "a body", file: body, args: "--provider stripe --url {}/stripe", wantKey: "stripe:evt_captured"},
		{name: "a body, its ID in a header", file: `{"ref":"main"}`, args: "--provider github --url {}/github --id guid-1", wantKey: "github:292430182:guid-1"},
		{name: "a request with line feeds only", args: "--provider stripe --url {}/stripe", wantKey: "stripe:evt_captured",
			file: "POST /captured HTTP/1.1\nHost: old.example.com\nContent-Length: 47\nStripe-Signature: t=1,v1=00\nX-Trace: 7\nWebhook-Dedup-Key: forged\n\n" + body,
			check: func(t *testing.T, r run) {
				if r.header.Get("X-Trace") != "7" || strings.Contains(r.header.Get("Stripe-Signature"), "t=1,") {
					t.Fatalf("headers %v", r.header)
				}
			}},
		{name: "a request without a length", args: "--provider stripe --url {}/stripe", wantKey: "stripe:evt_captured",
			file: "POST / HTTP/1.1\r\nHost: x\r\n\r\n" + body},
		{name: "a line feed after the body", args: "--provider stripe --url {}/stripe", wantKey: "stripe:evt_captured",
			file: "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 47\r\n\r\n" + body + "\n"},
		{name: "HTTP/2 as tools write it", args: "--provider stripe --url {}/stripe", wantKey: "stripe:evt_captured",
			file: "POST / HTTP/2\r\nHost: x\r\n\r\n" + body},
		{name: "the captured path", args: "--provider stripe --url {}", wantKey: "stripe:evt_captured",
			file: "POST /stripe HTTP/1.1\r\nHost: x\r\n\r\n" + body},
		{name: "identity headers are kept", args: "--provider github --url {}/github", wantKey: "github:7:guid-7",
			file: "POST / HTTP/1.1\nHost: x\nX-GitHub-Hook-ID: 7\nX-GitHub-Delivery: guid-7\nX-Hub-Signature-256: sha256=00\n\n{}"},
		{name: "another ID in the identity header", args: "--provider github --url {}/github --id guid-8", wantKey: "github:7:guid-8",
			file: "POST / HTTP/1.1\nHost: x\nX-GitHub-Hook-ID: 7\nX-GitHub-Delivery: guid-7\n\n{}"},
		{name: "the second family of headers", args: "--provider svix --url {}/svix", wantKey: "svix:msg_1",
			file: "POST / HTTP/1.1\nHost: x\nWebhook-Id: msg_1\nWebhook-Timestamp: 1\nWebhook-Signature: v1,AA==\n\n{}"},
		{name: "another ID in the second family", args: "--provider svix --url {}/svix --id msg_2", wantKey: "svix:msg_2",
			file: "POST / HTTP/1.1\nHost: x\nWebhook-Id: msg_1\nWebhook-Timestamp: 1\nWebhook-Signature: v1,AA==\n\n{}"},
		{name: "Shopify's newer headers", args: "--provider shopify --url {}/shopify", wantKey: "shopify:wh_1",
			file: "POST / HTTP/1.1\nHost: x\nShopify-Webhook-Id: wh_1\nShopify-Hmac-Sha256: AA==\n\n{}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := newApp(t, nil)
			url := guardedEndpoint(t, app, "")
			file := filepath.Join(t.TempDir(), "captured")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"send", "--file", file, "--copies", "2"}, strings.Fields(strings.ReplaceAll(c.args, "{}", url))...)
			runCommand(t, t.Context(), "", args...).want(t, 0, "OK: exactly one", "")
			app.wantRuns(t, 1)
			got := app.all()[0]
			if got.key != c.wantKey {
				t.Fatalf("the application was told %s, want %s", got.key, c.wantKey)
			}
			if c.check != nil {
				c.check(t, got)
			}
		})
	}
	t.Run("from stdin", func(t *testing.T) {
		app := newApp(t, nil)
		runCommand(t, t.Context(), body, "send", "--provider", "stripe", "--url", guardedEndpoint(t, app, "")+"/stripe", "--file", "-").
			want(t, 0, "stripe event evt_captured to", "")
	})
}

func TestParseCaptured(t *testing.T) {
	for _, c := range []struct {
		name, file, body, wantErr string
		isRequest                 bool
	}{
		{name: "JSON", file: `{"a":1}`, body: `{"a":1}`},
		{name: "a body that mentions HTTP", file: "see POST / HTTP/1.1", body: "see POST / HTTP/1.1"},
		{name: "chunks", file: "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", body: "ab", isRequest: true},
		{name: "no body", file: "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", isRequest: true},
		{name: "empty", wantErr: "empty"},
		{name: "cut off", file: "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab", wantErr: "shorter than its Content-Length"},
		{name: "too long", file: "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nab", wantErr: "goes on after the 1 bytes"},
		{name: "a header that is none", file: "POST / HTTP/1.1\r\nHost x\r\n\r\n", wantErr: "as an HTTP request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseCaptured([]byte(c.file))
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Fatalf("error %v, want one that says %q", err, c.wantErr)
				}
				return
			}
			if err != nil || string(got.body) != c.body || (got.request != nil) != c.isRequest {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	processed, duplicate := attempt{status: 200, result: "processed"}, attempt{status: 200, result: "duplicate"}
	refused := attempt{status: 401, result: "invalid_signature"}
	silent := attempt{err: errHungUp}
	for _, c := range []struct {
		name   string
		expect expectation
		got    []attempt
		ok     bool
		says   string
	}{
		{"one processed", expectOnce, []attempt{processed}, true, "it was processed"},
		{"one processed, others duplicates", expectOnce, []attempt{duplicate, processed, duplicate}, true, "2 were duplicates"},
		{"two processed", expectOnce, []attempt{processed, processed}, false, "got 2 processed"},
		{"only duplicates", expectOnce, []attempt{duplicate, duplicate}, false, "processed before"},
		{"one processed, one busy", expectOnce, []attempt{processed, {status: 503, result: "in_flight"}}, false, "see in_flight"},
		{"processed, answered 500", expectOnce, []attempt{{status: 500, result: "processed"}}, false, "got 0 processed"},
		{"processed, the answer broken off", expectOnce, []attempt{{status: 200, result: "processed", err: errHungUp}}, false, "No answer in time"},
		{"a 204 is an acknowledgement", expectOnce, []attempt{{status: 204, result: "processed"}}, true, ""},
		{"failed", expectOnce, []attempt{{status: 500, result: "failed"}}, false, "did not acknowledge"},
		{"no answer", expectOnce, []attempt{silent}, false, "No answer in time"},
		{"store down", expectOnce, []attempt{{status: 503, result: "store_error"}}, false, "store does not work"},
		{"no ID", expectOnce, []attempt{{status: 200, result: "passed"}}, false, "without a claim"},
		{"refused", expectOnce, []attempt{refused}, false, "Is it the endpoint's secret"},
		{"200 without a header", expectOnce, []attempt{{status: 200}}, false, "No Webhook-Dedup header"},
		{"nothing sent", expectOnce, nil, false, "nothing was sent"},
		{"all refused", expectRefused, []attempt{refused, refused}, true, "all 2 were refused"},
		{"not all refused", expectRefused, []attempt{refused, processed}, false, "was accepted"},
		{"a 401 of somebody else", expectRefused, []attempt{{status: 401}}, false, "No Webhook-Dedup header"},
		{"all duplicates", expectDuplicate, []attempt{duplicate}, true, "1 delivery answered as duplicate"},
		{"not a duplicate", expectDuplicate, []attempt{processed}, false, "0 of 1 were"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.expect.judge(c.got)
			if v.ok != c.ok || !strings.Contains(v.text+"\n"+strings.Join(v.hints, "\n"), c.says) {
				t.Fatalf("got %+v", v)
			}
		})
	}
}
