package webhookdedup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// secretEnv names the variable from which `send` takes the secret where no flag gives one.
const secretEnv = "WEBHOOK_SECRET"

const (
	maxCopies          = 1000
	defaultSendTimeout = 30 * time.Second
)

// sendOptions are the flags of `send`.
type sendOptions struct {
	catalogueOptions
	provider, url                   string
	secret, secretFile              string
	copies                          int
	concurrent, tamper, asJSON      bool
	insecure                        bool
	id, file, method, publicURL     string
	age, timeout                    durationFlag
	headers                         []string
	expect                          string
	ageGiven, idGiven, secretsGiven bool
}

func newSendCommand() *cobra.Command {
	o := new(sendOptions)
	cmd := &cobra.Command{
		Use:   "send --provider <name> --url <url> [flags]",
		Short: "Delivers a signed event, and checks that it was processed exactly once",
		Long: `Signs an event as a provider does and delivers it to an endpoint, --copies times, in turn or all
at once. It prints what each delivery was told, and whether exactly one was processed and every
other one was answered as a duplicate. The application behind the endpoint does get the event: use
one that may.

The event is a sample of the provider's with a fresh ID, or a captured one with --file: a request
body, or a whole HTTP request (start line, headers, empty line, body). A captured request keeps
its headers, and with them the event's ID; its signature is replaced by a fresh one. Every
delivery is signed anew, with the time at which it is sent, and has a connection of its own.

The secret comes from --secret, --secret-file or the environment variable WEBHOOK_SECRET; only the
latter two keep it out of the shell's history. It is never printed, and neither is the signature.

With --tamper, and with an --age beyond the provider's tolerance, every delivery must be refused
with 401. --expect names another outcome to check for: once, refused, or duplicate (the event was
processed before).

Providers of your own are found in the configuration that --config names. It is read, not started.

Exit status: 0 the outcome is the expected one; 1 it is not, or there was no answer; 2 a flag or a
file is wrong, and nothing was sent; 130 interrupted.`,
		Example: `  read -rs WEBHOOK_SECRET && export WEBHOOK_SECRET
  caddy webhook-dedup send --provider stripe --url http://localhost/stripe
  caddy webhook-dedup send --provider stripe --url http://localhost/stripe --copies 5 --concurrent
  caddy webhook-dedup send --provider stripe --url http://localhost/stripe --tamper
  caddy webhook-dedup send --provider github --url http://localhost/github --file captured.http
  caddy webhook-dedup send --provider acme --config Caddyfile --url http://localhost/acme --age 10m --json`,
		Args: noArguments,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.provider, "provider", "p", "", "the provider to send as, from 'caddy webhook-dedup providers' or --config")
	flags.StringVarP(&o.url, "url", "u", "", "the endpoint")
	flags.StringVarP(&o.secret, "secret", "s", "", "the secret to sign with; better: $"+secretEnv)
	flags.StringVar(&o.secretFile, "secret-file", "", "a file with the secret, - for stdin; a last newline is left out")
	flags.IntVarP(&o.copies, "copies", "n", 1, "how many times the event is delivered, at most "+strconv.Itoa(maxCopies))
	flags.BoolVar(&o.concurrent, "concurrent", false, "all copies at once, not in turn")
	flags.StringVar(&o.id, "id", "", "the event's ID (default a fresh one)")
	flags.StringVarP(&o.file, "file", "f", "", "a captured request or request body, - for stdin")
	flags.BoolVar(&o.tamper, "tamper", false, "change the body after signing: a space is added to it")
	flags.Var(&o.age, "age", "how old the signed timestamp is; negative: in the future")
	flags.StringArrayVarP(&o.headers, "header", "H", nil, "another header, as 'Name: value'; repeatable")
	flags.StringVar(&o.method, "method", "", "the HTTP method (default the provider's)")
	flags.StringVar(&o.publicURL, "public-url", "", "what public_url says at the endpoint, for providers that sign the URL")
	flags.Var(&o.timeout, "timeout", "after how long without an answer to hang up (default the provider's, else 30s)")
	flags.BoolVar(&o.insecure, "insecure", false, "accept any TLS certificate")
	flags.StringVar(&o.expect, "expect", "", "the outcome to expect: once, refused or duplicate (default: see above)")
	o.addFlags(flags)
	flags.BoolVar(&o.asJSON, "json", false, "print the outcome as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.ageGiven, o.idGiven = flags.Changed("age"), flags.Changed("id")
		o.secretsGiven = flags.Changed("secret") || flags.Changed("secret-file")
		return o.run(cmd)
	}
	return cmd
}

func (o *sendOptions) run(cmd *cobra.Command) error {
	p, err := o.plan(cmd.InOrStdin())
	if err != nil {
		return usageError(cmd, err)
	}
	ctx, stop := untilInterrupted(cmd)
	defer stop()
	report := &sendReport{plan: p}
	if !o.asJSON {
		report.out = newScreen(cmd.OutOrStdout())
		report.printHead()
	}
	report.deliver(ctx)
	report.verdict = p.expect.judge(report.attempts)
	if o.asJSON {
		if err := report.printJSON(cmd.OutOrStdout()); err != nil {
			return exitWith(cmd, exitFailed, fmt.Errorf("printing the outcome: %w", err))
		}
	} else if ctx.Err() == nil {
		report.printVerdict()
	}
	switch {
	case ctx.Err() != nil:
		return exitWith(cmd, exitInterrupted, errors.New("interrupted"))
	case report.verdict.ok:
		return nil
	}
	return exitWith(cmd, exitFailed, report.unreachable())
}

// sendReport is what came of the deliveries.
type sendReport struct {
	plan     *sendPlan
	out      *screen // nil: nothing is printed on the way
	attempts []attempt
	verdict  sendVerdict
}

// deliver makes the deliveries. In turn, it ends with the first one that could not even connect.
func (r *sendReport) deliver(ctx context.Context) {
	p := r.plan
	if p.concurrent {
		senders := make([]*sender, p.copies)
		for i := range senders {
			senders[i] = p.sender
		}
		r.attempts = sendTogether(ctx, senders)
		for i := range r.attempts {
			r.print(i)
		}
		return
	}
	for i := range p.copies {
		r.attempts = append(r.attempts, p.sender.send(ctx, nil))
		if ctx.Err() != nil {
			return
		}
		r.print(i)
		if isUnreachable(r.attempts[i].err) {
			return
		}
	}
}

func (r *sendReport) printHead() {
	p := r.plan
	how := ""
	if p.copies > 1 {
		how = fmt.Sprintf(", %d copies in turn", p.copies)
		if p.concurrent {
			how = fmt.Sprintf(", %d copies at once", p.copies)
		}
	}
	fmt.Fprintf(r.out, "%s event %s to %s%s\n", p.sender.provider.Spec().ID, p.eventName(), p.shownURL(), how)
}

func (r *sendReport) print(i int) {
	if r.out == nil {
		return
	}
	a := r.attempts[i]
	status, word := strconv.Itoa(a.status), a.result
	if a.status == 0 {
		status = "---"
	}
	if word == "" {
		word = "-"
	}
	line := fmt.Sprintf("%4d  %s  %s %8s", i+1, status, pad(word, 18), took(a.took))
	if a.err != nil {
		line += "  " + a.err.Error()
	}
	fmt.Fprintln(r.out, line)
}

func (r *sendReport) printVerdict() {
	style := styleRed
	if r.verdict.ok {
		style = styleGreen
	}
	fmt.Fprintln(r.out, r.out.style(style, r.verdict.text))
	for _, hint := range r.verdict.hints {
		for i, line := range wrap(hint, 96) {
			fmt.Fprintln(r.out, map[bool]string{true: "  - ", false: "    "}[i == 0]+line)
		}
	}
}

// unreachable is an error where no delivery found anybody at the other end.
func (r *sendReport) unreachable() error {
	for _, a := range r.attempts {
		if !isUnreachable(a.err) {
			return nil
		}
	}
	return fmt.Errorf("no connection to %s: %w; is the server running, and is this its address?", r.plan.sender.url.Host, r.attempts[0].err)
}

func isUnreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, syscall.ECONNREFUSED)
}

// printJSON prints the outcome for programs.
func (r *sendReport) printJSON(w io.Writer) error {
	type delivery struct {
		Status     int     `json:"status"`
		Result     string  `json:"result"`
		DurationMS float64 `json:"duration_ms"`
		Error      string  `json:"error,omitempty"`
	}
	p := r.plan
	out := struct {
		Provider   string     `json:"provider"`
		URL        string     `json:"url"`
		EventID    string     `json:"event_id"`
		Copies     int        `json:"copies"`
		Concurrent bool       `json:"concurrent"`
		Expected   string     `json:"expected"`
		AsExpected bool       `json:"as_expected"`
		Verdict    string     `json:"verdict"`
		Hints      []string   `json:"hints,omitempty"`
		Deliveries []delivery `json:"deliveries"`
	}{
		p.sender.provider.Spec().ID, p.shownURL(), p.eventID, p.copies, p.concurrent,
		string(p.expect), r.verdict.ok, r.verdict.text, r.verdict.hints, []delivery{},
	}
	for _, a := range r.attempts {
		d := delivery{a.status, a.result, float64(a.took.Microseconds()) / 1000, ""}
		if a.err != nil {
			d.Error = a.err.Error()
		}
		out.Deliveries = append(out.Deliveries, d)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
