package provider

import (
	"encoding/base64"
	"hash/fnv"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Example returns a sample event with the ID, unsigned; see [Compiled.Sign]. The ID is the last part of the event's identity, and its only
// one unless the provider's identities have several; where a hash of the body names the event, the body contains the ID. An entry of
// the catalogue has a realistic event, a batch of one where it sends batches; for a provider without one it is the smallest that
// [Compiled.Identify] identifies.
func (s Spec) Example(id string, now time.Time) Delivery {
	d := Delivery{Method: "POST", Header: make(http.Header)}
	if len(s.Methods) > 0 {
		d.Method = s.Methods[0]
	}
	if s.Sample.Body == "" && len(s.Sample.Header) == 0 {
		s.build(&d, id, now)
		return d
	}
	for name, value := range s.Sample.Header {
		d.Header.Set(name, fill(value, id, now))
	}
	body := s.Sample.Body
	if before, rest, ok := strings.Cut(body, "{base64}"); ok {
		inner, after, _ := strings.Cut(rest, "{/base64}")
		encoded := base64.StdEncoding.EncodeToString([]byte(fill(inner, html.EscapeString(id), now)))
		body = before + s.escape(encoded+"\n") + after
	}
	d.Body = []byte(fill(body, s.escape(id), now))
	return d
}

func fill(text, id string, now time.Time) string {
	return strings.NewReplacer(
		"{event_id}", id,
		"{event_number}", numberOf(id),
		"{unix}", strconv.FormatInt(now.Unix(), 10),
		"{unix_ms}", strconv.FormatInt(now.UnixMilli(), 10),
		"{rfc3339}", now.UTC().Format(time.RFC3339),
	).Replace(text)
}

// numberOf is the ID if it is a number, else one that is made from it.
func numberOf(id string) string {
	if indexOf(id) >= 0 {
		return id
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return strconv.FormatUint(h.Sum64()>>16, 10) // exact in a float64 as well
}

// escape writes the ID as the sample's body needs it.
func (s Spec) escape(id string) string {
	if strings.HasPrefix(s.Sample.Header["Content-Type"], "application/x-www-form-urlencoded") {
		return url.QueryEscape(id)
	}
	quoted := quote(id)
	return quoted[1 : len(quoted)-1]
}

// quote writes s as a JSON string; broken UTF-8 becomes U+FFFD.
func quote(s string) string {
	out, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	return string(out)
}

// build makes the smallest delivery of an own provider: each part of its identity at its first source, the ID in the last part.
func (s Spec) build(d *Delivery, id string, now time.Time) {
	form, query := url.Values{}, url.Values{}
	var body object
	set := func(src Source, value string) {
		switch src.From {
		case FromHeader:
			d.Header.Set(src.Name, value)
		case FromForm:
			form.Set(src.Name, value)
		case FromQuery:
			query.Set(src.Name, value)
		case FromJSON:
			if steps, err := parsePath(src.Name); err == nil {
				body.set(steps, quote(value))
			}
		case FromBody:
			body.set([]step{{"id", -1}}, quote(value))
		}
	}
	for i, p := range s.EventID {
		value := id
		if i < len(s.EventID)-1 {
			value = "part-" + strconv.Itoa(i+1)
		}
		if len(p) > 0 {
			set(p[0], value)
		}
	}
	for _, scheme := range s.Schemes[:min(1, len(s.Schemes))] {
		if scheme.IDHeader != "" {
			d.Header.Set(scheme.IDHeader, id)
		}
		if t := scheme.Timestamp; t != nil && t.From == FromJSON {
			if steps, err := parsePath(t.Name); err == nil {
				body.set(steps, quote(formatTimestamp(t.Format, now)))
			}
		}
	}
	d.Query = query.Encode()
	if len(form) > 0 {
		d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		d.Body = []byte(form.Encode())
		return
	}
	d.Header.Set("Content-Type", "application/json")
	d.Body = []byte(body.String())
}

// object is a JSON value under construction: a member's value, or the members.
type object struct {
	value   string
	names   []step
	members []*object
}

func (o *object) set(path []step, value string) {
	if len(path) == 0 {
		o.value = value
		return
	}
	i := slices.IndexFunc(o.names, func(s step) bool { return s.name == path[0].name })
	if i < 0 {
		i = len(o.names)
		o.names = append(o.names, path[0])
		o.members = append(o.members, new(object))
	}
	o.members[i].set(path[1:], value)
}

// String writes members as an object, even where a path has numbers: those are names as well.
func (o *object) String() string {
	if o.value != "" {
		return o.value
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, n := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(n.name) + ":" + o.members[i].String())
	}
	b.WriteByte('}')
	return b.String()
}
