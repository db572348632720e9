package webhookdedup

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("webhook_dedup", parseHandler)
	// Before invoke, so that every directive which may answer comes after it. Before reverse_proxy would not do: a
	// handle block is sorted in front of that, and its proxy would never be guarded.
	httpcaddyfile.RegisterDirectiveOrder("webhook_dedup", httpcaddyfile.Before, "invoke")
}

func parseHandler(helper httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h := new(Handler)
	if err := h.UnmarshalCaddyfile(helper.Dispenser); err != nil {
		return nil, err
	}
	return h, nil
}

// place is file and line of the current token.
func place(d *caddyfile.Dispenser) string {
	return fmt.Sprintf("%s:%d", filepath.Base(d.File()), d.Line())
}

// UnmarshalCaddyfile sets the handler up from its directive. Syntax:
//
//	webhook_dedup [<matcher>] <provider> {
//		secret         <secrets...>
//		signature      off | <algorithm> { … }
//		tolerance      <duration> | off
//		public_url     <scheme://host[:port][/prefix]>
//		id             <source> [<source>...]
//		scope          <text>
//		ttl            <duration>
//		lease          <duration>
//		timeout        <duration>
//		in_flight      wait [<duration>] | reject [<status>] | accept
//		on_missing_id  pass | hash | reject
//		on_store_error reject | pass
//		store_timeout  <duration>
//		acknowledge    <status...>
//		duplicate      <status> [<body>] | replay [<max_size>]
//		forward_key    <header>
//		max_body       <size>
//		max_response   <size>
//		batch          whole | filter
//		handshake      pass | answer
//		certificate    <file>
//		mode           enforce | observe
//		store          <name> { … }
//	}
//
// The block of signature is
//
//	signature <algorithm> {
//		header    <name>
//		prefix    <text>
//		encoding  hex | base64 | base64url
//		key_encoding raw | base64 | hex
//		content   <template>
//		timestamp header <name> | json <path> [unix | unix_ms | rfc3339]
//	}
//
// and a source is one of
//
//	header <name>
//	json <path>
//	form <field>
//	query <name>
//	body
//	body except <json_path...>
//
// of which the last ends its line. The sources of one id line are alternatives; several lines are the parts of the ID.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	h.DefinedAt = place(d)
	if !d.AllArgs(&h.Provider) {
		return d.Errf("webhook_dedup takes one provider, as in: webhook_dedup stripe { … }")
	}
	seen := map[string]bool{}
	for d.NextBlock(0) {
		name := d.Val()
		if seen[name] && name != "secret" && name != "id" {
			return d.Errf("%s is given twice", name)
		}
		seen[name] = true
		if err := h.unmarshalLine(d, name); err != nil {
			return err
		}
	}
	if !h.SignatureOff && len(h.Secrets) == 0 {
		return d.Errf("webhook_dedup %s: no secret; give at least one, as in: secret {env.WEBHOOK_SECRET}; or: signature off", h.Provider)
	}
	return nil
}

var subdirectives = []string{"secret", "signature", "tolerance", "public_url", "id", "scope", "ttl", "lease", "timeout", "in_flight",
	"on_missing_id", "on_store_error", "store_timeout", "acknowledge", "duplicate", "forward_key", "max_body", "max_response",
	"batch", "handshake", "certificate", "mode", "store"}

// unmarshalLine parses one subdirective. What only needs its own value is checked here, where the line is known.
func (h *Handler) unmarshalLine(d *caddyfile.Dispenser, name string) (err error) {
	switch name {
	case "secret":
		secrets := d.RemainingArgs()
		if len(secrets) == 0 {
			return d.Errf("secret takes at least one value")
		}
		if slices.Contains(secrets, "") {
			return d.Errf("secret is empty")
		}
		h.Secrets = append(h.Secrets, secrets...)
	case "signature":
		h.Signature, h.SignatureOff, err = parseSignature(d)
	case "tolerance":
		h.Tolerance, err = parseTolerance(d)
	case "public_url":
		if err = oneArg(d, &h.PublicURL); err == nil && !strings.Contains(h.PublicURL, "{") {
			if _, bad := checkPublicURL(h.PublicURL); bad != nil {
				return d.Err(bad.Error())
			}
		}
	case "id":
		var part provider.Part
		part, err = parseSources(d)
		h.ID = append(h.ID, part)
	case "scope":
		err = oneArg(d, &h.Scope)
	case "ttl":
		err = parseDuration(d, &h.TTL)
	case "lease":
		err = parseDuration(d, &h.Lease)
	case "timeout":
		err = parseDuration(d, &h.Timeout)
	case "in_flight":
		h.InFlight, err = parseInFlight(d)
	case "on_missing_id":
		err = parseWord(d, &h.OnMissingID, missingIDPass, missingIDHash, missingIDReject)
	case "on_store_error":
		err = parseWord(d, &h.OnStoreError, storeErrorReject, storeErrorPass)
	case "store_timeout":
		err = parseDuration(d, &h.StoreTimeout)
	case "acknowledge":
		h.Acknowledge, err = parseAcknowledge(d)
	case "duplicate":
		h.Duplicate, err = parseDuplicate(d)
	case "forward_key":
		err = oneArg(d, &h.ForwardKey)
	case "max_body":
		err = parseSize(d, &h.MaxBody)
	case "max_response":
		err = parseSize(d, &h.MaxResponse)
	case "batch":
		err = parseWord(d, &h.Batch, batchWhole, batchFilter)
	case "handshake":
		err = parseWord(d, &h.Handshake, handshakePass, handshakeAnswer)
	case "certificate":
		err = oneArg(d, &h.Certificate)
	case "mode":
		err = parseWord(d, &h.Mode, modeEnforce, modeObserve)
	case "store":
		h.StoreRaw, err = parseStore(d)
	default:
		return d.Errf("unrecognized subdirective %q; allowed are %s", name, strings.Join(subdirectives, ", "))
	}
	return err
}

func oneArg(d *caddyfile.Dispenser, target *string) error {
	name := d.Val()
	if !d.AllArgs(target) || *target == "" {
		return d.Errf("%s takes one value", name)
	}
	return nil
}

func parseWord(d *caddyfile.Dispenser, target *string, allowed ...string) error {
	name := d.Val()
	if !d.AllArgs(target) {
		return d.Errf("%s takes one of %s", name, strings.Join(allowed, ", "))
	}
	if !slices.Contains(allowed, *target) {
		return d.Errf("%s is %q; allowed are %s", name, *target, strings.Join(allowed, ", "))
	}
	return nil
}

func parseDuration(d *caddyfile.Dispenser, target *caddy.Duration) error {
	name := d.Val()
	var text string
	if !d.AllArgs(&text) {
		return d.Errf("%s takes one duration, such as 30s or 7d", name)
	}
	duration, err := caddy.ParseDuration(text)
	if err != nil || duration <= 0 {
		return d.Errf("%s is %q; allowed are positive durations such as 30s or 7d", name, text)
	}
	*target = caddy.Duration(duration)
	return nil
}

func parseTolerance(d *caddyfile.Dispenser) (caddy.Duration, error) {
	if args := d.CountRemainingArgs(); args == 1 {
		d.NextArg()
		if d.Val() == "off" {
			return -1, nil
		}
		d.Prev()
	}
	var tolerance caddy.Duration
	return tolerance, parseDuration(d, &tolerance)
}

func parseSize(d *caddyfile.Dispenser, target *int64) error {
	name := d.Val()
	var text string
	if !d.AllArgs(&text) {
		return d.Errf("%s takes one size, such as 10MiB", name)
	}
	size, err := humanize.ParseBytes(text)
	if err != nil || size == 0 || size > math.MaxInt64 {
		return d.Errf("%s is %q; allowed are positive sizes such as 10MiB", name, text)
	}
	*target = int64(size)
	return nil
}

func parseInFlight(d *caddyfile.Dispenser) (*InFlight, error) {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return nil, d.Errf("in_flight takes: wait [<duration>], reject [<status>] or accept")
	}
	in := &InFlight{Action: args[0]}
	switch {
	case len(args) == 1 && slices.Contains([]string{inFlightWait, inFlightReject, inFlightAccept}, args[0]):
	case len(args) == 2 && args[0] == inFlightWait:
		wait, err := caddy.ParseDuration(args[1])
		if err != nil || wait <= 0 {
			return nil, d.Errf("in_flight wait is %q; allowed are positive durations such as 8s", args[1])
		}
		in.Wait = caddy.Duration(wait)
	case len(args) == 2 && args[0] == inFlightReject:
		status, err := parseStatus(args[1], 400, 599)
		if err != nil {
			return nil, d.Errf("in_flight reject: %v", err)
		}
		in.Status = status
	default:
		return nil, d.Errf("in_flight %s; allowed are: wait [<duration>], reject [<status>], accept", strings.Join(args, " "))
	}
	return in, nil
}

func parseAcknowledge(d *caddyfile.Dispenser) ([]string, error) {
	words := d.RemainingArgs()
	if len(words) == 0 {
		return nil, d.Errf("acknowledge takes at least one status, such as 2xx or 409")
	}
	var set statusSet
	for _, word := range words {
		if !set.add(word) {
			return nil, d.Errf("acknowledge %q; allowed are statuses from 200 to 499 and 2xx, 3xx, 4xx", word)
		}
	}
	return words, nil
}

func parseDuplicate(d *caddyfile.Dispenser) (*Duplicate, error) {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return nil, d.Errf("duplicate takes: <status> [<body>] or replay [<max_size>]")
	}
	if args[0] == "replay" {
		replay := &Duplicate{Replay: true}
		if len(args) == 2 {
			size, err := humanize.ParseBytes(args[1])
			if err != nil || size == 0 || size > math.MaxInt64 {
				return nil, d.Errf("duplicate replay is %q; allowed are positive sizes such as 64KiB", args[1])
			}
			replay.MaxSize = int64(size)
		}
		return replay, nil
	}
	status, err := parseStatus(args[0], 200, 299)
	if err != nil {
		return nil, d.Errf("duplicate: %v, because a provider retries on any other; or replay", err)
	}
	duplicate := &Duplicate{Status: status}
	if len(args) == 2 {
		duplicate.Body = args[1]
	}
	return duplicate, nil
}

// parseSources parses alternatives up to the end of the line.
func parseSources(d *caddyfile.Dispenser) (provider.Part, error) {
	var part provider.Part
	args := d.RemainingArgs()
	for len(args) > 0 {
		from := args[0]
		args = args[1:]
		source := provider.Source{From: from}
		switch from {
		case provider.FromHeader, provider.FromJSON, provider.FromForm, provider.FromQuery:
			if len(args) == 0 {
				return nil, d.Errf("id %s takes a name", from)
			}
			source.Name, args = args[0], args[1:]
		case provider.FromBody:
			if len(args) > 0 && args[0] == "except" {
				if len(args) == 1 {
					return nil, d.Errf("id body except takes at least one JSON path")
				}
				source.Except, args = args[1:], nil
			}
		default:
			return nil, d.Errf("id source %q; allowed are header <name>, json <path>, form <field>, query <name>, body, body except <json_path...>", from)
		}
		part = append(part, source)
	}
	if len(part) == 0 {
		return nil, d.Errf("id takes at least one source, such as: header X-Event-Id")
	}
	return part, nil
}

func parseSignature(d *caddyfile.Dispenser) (scheme *provider.Scheme, off bool, err error) {
	var algorithm string
	if !d.AllArgs(&algorithm) {
		return nil, false, d.Errf("signature takes: off, or an algorithm and a block")
	}
	nesting := d.Nesting()
	if algorithm == "off" {
		if d.NextBlock(nesting) {
			return nil, false, d.Errf("signature off takes no block")
		}
		return nil, true, nil
	}
	if !slices.Contains(provider.Algorithms(), algorithm) {
		return nil, false, d.Errf("signature algorithm %q; allowed are off, %s", algorithm, strings.Join(provider.Algorithms(), ", "))
	}
	scheme = &provider.Scheme{Algorithm: algorithm}
	at := place(d)
	seen := map[string]bool{}
	for d.NextBlock(nesting) {
		if seen[d.Val()] {
			return nil, false, d.Errf("%s is given twice", d.Val())
		}
		seen[d.Val()] = true
		switch name := d.Val(); name {
		case "header":
			err = oneArg(d, &scheme.Header)
		case "prefix":
			err = oneArg(d, &scheme.Prefix)
		case "encoding":
			err = parseWord(d, &scheme.Encoding, "hex", "base64", "base64url")
		case "key_encoding":
			err = parseWord(d, &scheme.KeyEncoding, "raw", "base64", "hex")
		case "content":
			err = oneArg(d, &scheme.Content)
		case "timestamp":
			scheme.Timestamp, err = parseTimestamp(d)
		default:
			err = d.Errf("unrecognized subdirective %q of signature; allowed are header, prefix, encoding, key_encoding, content, timestamp", name)
		}
		if err != nil {
			return nil, false, err
		}
	}
	if scheme.Header == "" {
		return nil, false, fmt.Errorf("%s: signature %s lacks: header <name>", at, algorithm)
	}
	return scheme, false, nil
}

func parseTimestamp(d *caddyfile.Dispenser) (*provider.Timestamp, error) {
	args := d.RemainingArgs()
	if len(args) < 2 || len(args) > 3 || args[0] != provider.FromHeader && args[0] != provider.FromJSON {
		return nil, d.Errf("timestamp takes: header <name> or json <path>, and optionally unix, unix_ms or rfc3339")
	}
	timestamp := &provider.Timestamp{From: args[0], Name: args[1]}
	if len(args) == 3 {
		timestamp.Format = args[2]
		if !slices.Contains([]string{provider.FormatUnix, provider.FormatUnixMS, provider.FormatRFC3339}, args[2]) {
			return nil, d.Errf("timestamp format %q; allowed are unix, unix_ms, rfc3339", args[2])
		}
	}
	return timestamp, nil
}

// parseStore parses `store <name> { … }`, whose block belongs to the store module.
func parseStore(d *caddyfile.Dispenser) ([]byte, error) {
	if !d.NextArg() {
		return nil, d.Errf("store takes a name; built in are %s", storeNames())
	}
	name := d.Val()
	if _, err := caddy.GetModule(storeNamespace + "." + name); err != nil {
		return nil, d.Errf("unknown store %q; built in are %s", name, storeNames())
	}
	module, err := caddyfile.UnmarshalModule(d, storeNamespace+"."+name)
	if err != nil {
		return nil, err
	}
	if _, ok := module.(storeModule); !ok {
		return nil, d.Errf("module %s.%s is no webhook_dedup store", storeNamespace, name)
	}
	return caddyconfig.JSONModuleObject(module, "module", name, nil), nil
}

func storeNames() string {
	var names []string
	for _, module := range caddy.GetModules(storeNamespace) {
		names = append(names, module.ID.Name())
	}
	return strings.Join(names, ", ")
}
