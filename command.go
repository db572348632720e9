package webhookdedup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:      "webhook-dedup",
		Usage:     "<command>",
		Short:     "Tries out, tests and looks into the processing of webhooks",
		CobraFunc: setUpCommand,
	})
}

// The exit statuses of every command below `caddy webhook-dedup`.
const (
	exitFailed      = 1   // it ran, and what it found is not as it should be
	exitUsage       = 2   // it did not run: a flag, an argument or a file is wrong
	exitInterrupted = 130 // it was interrupted
)

// newSubcommands are the commands below `caddy webhook-dedup`.
var newSubcommands = []func() *cobra.Command{
	newDemoCommand,
	newSendCommand,
	newProvidersCommand,
	newInspectCommand,
	newListCommand,
	newForgetCommand,
	newStatsCommand,
	newWatchCommand,
}

func setUpCommand(cmd *cobra.Command) {
	cmd.Long = `webhook_dedup stands in front of an application that receives webhooks. It verifies each delivery,
lets each event through to the application once, answers duplicates itself, and gives an event
back to the provider's retry when the application did not acknowledge it.

These commands show it at work, and test an endpoint that it guards:

  demo        starts everything it needs by itself and shows what happens to deliveries
  send        delivers a signed event to an endpoint, as often as you like, and checks that it ran once
  providers   tells what is known of each provider: signatures, event IDs, retries, traps

These ask a running Caddy through its admin endpoint:

  inspect     tells what is known of an event: whether it was processed, how often it ran and came
  list        lists events
  forget      removes the record of an event, so that its next delivery is processed
  stats       counts events by provider and state, and says how the stores are
  watch       shows deliveries as they come, with counts a second

Exit status: 0 all is as it should be; 1 it is not, or there is no such event; 2 a flag, an argument
or a file is wrong; 3 no admin endpoint answers, or its Caddy has no webhook_dedup; 4 a store failed;
130 interrupted.`
	cmd.Example = `  caddy webhook-dedup demo
  caddy webhook-dedup providers stripe
  caddy webhook-dedup send --provider stripe --url http://localhost/stripe --copies 5
  caddy webhook-dedup inspect evt_1PgafmB7WZ01zgkW
  caddy webhook-dedup list --state failed`
	cmd.DisableFlagsInUseLine = true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(cmd, err) })
	// Without this, cobra would show the help for a mistyped command, and succeed.
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return usageError(cmd, fmt.Errorf("no command %q; there are %s", args[0], subcommandNames(cmd)))
	}
	for _, newSubcommand := range newSubcommands {
		cmd.AddCommand(newSubcommand())
	}
}

func subcommandNames(cmd *cobra.Command) string {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return strings.Join(names, ", ")
}

// noArguments refuses arguments without repeating them: one may be a part of a secret that was not quoted.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError(cmd, fmt.Errorf("%s takes flags only, and got an argument beside them; quote values that contain spaces", cmd.Name()))
}

// usageError ends a command that could not run.
func usageError(cmd *cobra.Command, err error) error {
	return exitWith(cmd, exitUsage, fmt.Errorf("%w\nSee: %s --help", err, cmd.CommandPath()))
}

// exitWith ends a command with an exit status and, where there is one, an error on stderr. What it returns is for cobra.
func exitWith(cmd *cobra.Command, status int, err error) error {
	cmd.SilenceErrors = true
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Error: %v\n", err)
	}
	if status == exitFailed {
		return errors.New("exiting with status 1")
	}
	// Caddy's main function takes other statuses only from an error that it makes itself.
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return status, nil })(cmd, nil)
}

// untilInterrupted ends with the first SIGINT or SIGTERM; the second one ends the process.
func untilInterrupted(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// durationFlag is a duration as the Caddyfile has it, with days.
type durationFlag time.Duration

// String implements pflag.Value. Nothing stands for zero, so that the help shows no default.
func (d *durationFlag) String() string {
	if *d == 0 {
		return ""
	}
	return shortDuration(time.Duration(*d))
}

// Set implements pflag.Value.
func (d *durationFlag) Set(s string) error {
	parsed, err := caddy.ParseDuration(s)
	if err != nil {
		return errors.New("allowed are durations such as 30s, 10m, -1h or 7d")
	}
	*d = durationFlag(parsed)
	return nil
}

// Type implements pflag.Value.
func (*durationFlag) Type() string { return "duration" }

// shortDuration writes a duration as the Caddyfile takes it: 3d, 1d3h35m5s, 1.5s.
func shortDuration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + shortDuration(-d)
	case d == 0:
		return "0s"
	case d < time.Minute:
		return d.String()
	}
	text := ""
	if d >= day {
		text = strconv.Itoa(int(d/day)) + "d"
		d %= day
	}
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / unit.length; n > 0 {
			text += strconv.Itoa(int(n)) + unit.name
		}
		d %= unit.length
	}
	return text
}

// screen writes for people: with colours on a terminal, as plain text elsewhere.
type screen struct {
	io.Writer
	terminal bool
}

func newScreen(w io.Writer) *screen {
	file, ok := w.(*os.File)
	return &screen{w, ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == ""}
}

const (
	styleBold  = "1"
	styleDim   = "2"
	styleRed   = "31"
	styleGreen = "32"
)

// style marks text that stands at the end of a line or is padded already: escapes have no width.
func (s *screen) style(code, text string) string {
	if !s.terminal || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// pad fills text up to width columns.
func pad(text string, width int) string {
	if n := width - len([]rune(text)); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}

// wrap breaks text into lines of at most width columns.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
