package webhookdedup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
)

// Exit statuses of the commands that ask a running Caddy, beside those of all commands.
const (
	exitUnreachable = 3 // no admin endpoint answers, or it is of a Caddy without webhook_dedup
	exitStore       = 4 // a store failed
)

// adminAnswerLimit is after how long a command gives up on the admin endpoint, which bounds its own work a little sooner.
const adminAnswerLimit = adminTimeout + 5*time.Second

// adminExitStatuses is the end of the help of each of these commands.
const adminExitStatuses = `2 a flag or an argument is wrong; 3 no admin
endpoint answers there, or its Caddy has no webhook_dedup; 4 the store failed; 130 interrupted.`

// adminOptions are the flags of the commands that ask a running Caddy.
type adminOptions struct {
	catalogueOptions
	address string
	asJSON  bool
}

func (o *adminOptions) addFlags(cmd *cobra.Command, jsonHelp string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.address, "address", "", "Caddy's admin endpoint, as localhost:2019 or unix//run/caddy/admin.sock (default: the one in\n--config, else "+caddy.DefaultAdminListen+")")
	flags.StringVarP(&o.config, "config", "c", "", "a Caddy configuration that names the admin endpoint")
	flags.StringVarP(&o.adapter, "adapter", "a", "", "the configuration's format, where its name does not tell it")
	flags.BoolVar(&o.asJSON, "json", false, jsonHelp)
}

// adminError is a failure with the exit status that it leads to.
type adminError struct {
	status int
	err    error
}

func (e *adminError) Error() string { return e.err.Error() }
func (e *adminError) Unwrap() error { return e.err }

// fail ends a command with the exit status of its error.
func (o *adminOptions) fail(cmd *cobra.Command, ctx context.Context, err error) error {
	var known *adminError
	switch {
	case ctx.Err() != nil:
		return exitWith(cmd, exitInterrupted, errors.New("interrupted"))
	case errors.As(err, &known) && known.status == exitUsage:
		return usageError(cmd, err)
	case errors.As(err, &known):
		return exitWith(cmd, known.status, err)
	}
	return exitWith(cmd, exitFailed, err)
}

// adminClient asks one admin endpoint.
type adminClient struct {
	address string
	base    string // scheme and host
	unix    bool
	http    *http.Client
}

// client finds the endpoint as Caddy's own commands do: --address, else the one in --config, else the default.
func (o *adminOptions) client() (*adminClient, error) {
	usage := func(err error) error { return &adminError{exitUsage, err} }
	address := o.address
	if address == "" && o.config == "" && o.adapter != "" {
		return nil, usage(errors.New("--adapter has no use without --config"))
	}
	if address == "" && o.config != "" {
		var err error
		if address, err = o.configuredAddress(); err != nil {
			return nil, usage(fmt.Errorf("reading the configuration %s: %w", o.config, err))
		}
	}
	setDefault(&address, caddy.DefaultAdminListen)
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil || parsed.PortRangeSize() > 1 || !parsed.IsUnixNetwork() && parsed.Network != "tcp" || parsed.StartPort == 0 && !parsed.IsUnixNetwork() {
		return nil, usage(fmt.Errorf("%q is no address of an admin endpoint; allowed are host:port and unix//path/to/socket", address))
	}
	c := &adminClient{address: address, base: "http://" + parsed.JoinHostPort(0), unix: parsed.IsUnixNetwork()}
	dialed := parsed.JoinHostPort(0)
	if c.unix {
		c.base = "http://127.0.0.1" // a request needs a host, and the endpoint allows this one
		dialed, _, _ = strings.Cut(parsed.Host, "|")
	}
	c.http = &http.Client{Timeout: adminAnswerLimit, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, parsed.Network, dialed)
		},
	}}
	return c, nil
}

// configuredAddress is the admin endpoint of --config, empty where it says nothing about one.
func (o *adminOptions) configuredAddress() (string, error) {
	config, err := o.adapted()
	if err != nil {
		return "", err
	}
	var parsed struct {
		Admin struct {
			Disabled bool   `json:"disabled"`
			Listen   string `json:"listen"`
		} `json:"admin"`
	}
	if err := json.Unmarshal(config, &parsed); err != nil {
		return "", err
	}
	if parsed.Admin.Disabled {
		return "", errors.New("it turns the admin endpoint off ('admin off'), and these commands talk to that; give it an address, such as 'admin unix//run/caddy/admin.sock'")
	}
	return caddy.NewReplacer().ReplaceAll(parsed.Admin.Listen, ""), nil
}

// get asks for path and decodes the answer into v.
func (c *adminClient) get(ctx context.Context, path string, v any) error {
	return c.do(ctx, http.MethodGet, path, v)
}

func (c *adminClient) do(ctx context.Context, method, path string, v any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.base+adminPath+path, nil)
	if err != nil {
		return &adminError{exitUsage, err}
	}
	if !c.unix {
		request.Header.Set("Origin", c.base)
	}
	request.Header.Set("User-Agent", "caddy webhook-dedup")
	res, err := c.http.Do(request)
	if err != nil {
		return &adminError{exitUnreachable, c.unreachable(err)}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return &adminError{exitUnreachable, fmt.Errorf("the admin endpoint at %s did not finish its answer: %w", c.address, err)}
	}
	if res.StatusCode >= 300 {
		return c.refused(res.StatusCode, body)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return &adminError{exitUnreachable, fmt.Errorf("what answers at %s is not webhook_dedup's admin API: %w", c.address, err)}
	}
	return nil
}

// unreachable says what can be done about an endpoint that does not answer.
func (c *adminClient) unreachable(err error) error {
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no access to the admin endpoint at %s: run this as the user that Caddy runs as, or give its socket other permissions ('admin \"unix//path|0660\"')", c.address)
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("no admin endpoint answers at %s (%w). Is Caddy running? 'admin off' in its configuration turns the endpoint off; if it has another address, give that with --address, or the configuration with --config",
			c.address, op.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("the admin endpoint at %s did not answer within %s", c.address, adminAnswerLimit)
	}
	return fmt.Errorf("asking the admin endpoint at %s: %w", c.address, err)
}

// refused makes an error of an answer that is one.
func (c *adminClient) refused(status int, body []byte) error {
	var answer struct {
		Error string `json:"error"`
	}
	err := json.Unmarshal(body, &answer)
	if err != nil || answer.Error == "" {
		if status == http.StatusNotFound {
			return &adminError{exitUnreachable, fmt.Errorf("the Caddy at %s was built without webhook_dedup; 'caddy list-modules' shows what it has", c.address)}
		}
		return &adminError{exitUnreachable, fmt.Errorf("the admin endpoint at %s answers %d %q", c.address, status, bytes.TrimSpace(body[:min(len(body), 200)]))}
	}
	err = errors.New(answer.Error)
	switch {
	case status == http.StatusNotFound && strings.HasPrefix(answer.Error, noRecord), status == http.StatusConflict:
		return &adminError{exitFailed, err}
	case status == http.StatusBadRequest:
		return &adminError{exitUsage, err}
	case status == http.StatusServiceUnavailable:
		return &adminError{exitStore, err}
	case status == http.StatusForbidden:
		return &adminError{exitUnreachable, fmt.Errorf("the admin endpoint at %s does not let this command in: %w; 'origins' of the admin option allows more", c.address, err)}
	}
	return &adminError{exitUnreachable, fmt.Errorf("the admin endpoint at %s answers %d: %w", c.address, status, err)}
}
