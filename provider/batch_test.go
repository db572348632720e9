package provider_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func batch(t testing.TB, paths ...string) *provider.Compiled {
	t.Helper()
	return compile(t, provider.Spec{ID: "acme", Batch: &provider.Batch{Paths: paths, EventID: []provider.Part{provider.FromJSONPaths("id"), provider.FromJSONPaths("status")},
		Fallbacks: [][]provider.Part{{provider.FromJSONPaths("id")}, {{{From: "header", Name: "X-Id"}, {From: "body"}}}}, EventType: provider.FromJSONPaths("$.type")}})
}

const messages = "$.entry[*].changes[*].value.messages[*]"

func TestElements(t *testing.T) {
	hashOf := func(s string) string { return "sha256-" + hexSHA256(s) }
	deep := strings.Repeat("[", 100000) + strings.Repeat("]", 100000)
	for _, tt := range []struct {
		name  string
		paths []string
		body  string
		want  string // IDs
		err   error
	}{
		{"top-level array", []string{"$"}, `[{"id":"a"},{"id":"b"}]`, "a b", nil},
		{"line break and white space", []string{"$"}, " [ {\"id\":\"a\"}\n , {\"id\" : \"b\"} ]\r\n", "a b", nil},
		{"member", []string{"$.events"}, `{"x":[{"id":"n"}],"events":[{"id":"a"}],"y":1}`, "a", nil},
		{"member without dollar, of items", []string{"events[*]"}, `{"events":[{"id":"a"}]}`, "a", nil},
		{"parts", []string{"$"}, `[{"id":"a","status":"s"},{"id":"a"},{"id":"a","status":"t"}]`, "a|s a a|t", nil},
		{"element without ID", []string{"$"}, `[{"id":"a"},{"x":1}]`, "a " + hashOf(`{"x":1}`), nil},
		{"scalars and null", []string{"$"}, `[1,null,"x",[]]`, strings.Join([]string{hashOf("1"), hashOf("null"), hashOf(`"x"`), hashOf("[]")}, " "), nil},
		{"empty", []string{"$"}, `[]`, "", nil},
		{"nested", []string{messages}, `{"entry":[{"changes":[{"value":{"messages":[{"id":"a"},{"id":"b"}]}},{"value":{"messages":[{"id":"c"}]}}]},{"changes":[{"value":{"messages":[{"id":"d"}]}}]}]}`, "a b c d", nil},
		{"two paths, in the order of the body", []string{messages, "$.entry[*].changes[*].value.statuses"},
			`{"entry":[{"changes":[{"value":{"statuses":[{"id":"s","status":"read"}],"messages":[{"id":"a"}]}}]}]}`, "s|read a", nil},
		{"a change of another kind is an element", []string{messages}, `{"entry":[{"changes":[{"value":{"messages":[{"id":"a"}]}},{"id":"c","value":{"other":1}}]}]}`, "a c", nil},
		{"an entry without changes is an element", []string{messages}, `{"entry":[{"id":"e"},{"changes":[{"value":{"messages":[{"id":"a"}]}}]},7]}`, "e a " + hashOf("7"), nil},
		{"an empty array leaves its change", []string{messages}, `{"entry":[{"changes":[{"id":"c","value":{"messages":[]}}]}]}`, "c", nil},
		{"empty outside", []string{messages}, `{"entry":[]}`, "", nil},
		{"last of two arrays", []string{"$.events"}, `{"events":[{"id":"a"}],"events":[{"id":"b"}]}`, "b", nil},
		{"last of two is no array", []string{"$.events"}, `{"events":[{"id":"a"}],"events":1}`, "", provider.ErrNotBatch},
		{"last of two on the way", []string{messages}, `{"entry":[{"id":"e","changes":[{"value":{"messages":[{"id":"a"}]}}],"changes":1}]}`, "e", nil},
		{"last of two within", []string{messages}, `{"entry":[{"changes":[{"value":{"messages":[{"id":"a"}]},"value":{"messages":[{"id":"b"},{"id":"c"}]}}]}]}`, "b c", nil},
		{"escaped name", []string{"$.events"}, `{"\u0065vents":[{"id":"a"}]}`, "a", nil},
		{"an object for the array", []string{"$"}, `{"id":"a"}`, "", provider.ErrNotBatch},
		{"absent", []string{"$.events"}, `{"id":"a"}`, "", provider.ErrNotBatch},
		{"no JSON", []string{"$"}, `id=a`, "", provider.ErrNotBatch},
		{"nothing", []string{"$"}, ``, "", provider.ErrNotBatch},
		{"cut off", []string{"$"}, `[{"id":"a"},{"id"`, "", provider.ErrNotBatch},
		{"data behind", []string{"$"}, `[{"id":"a"}]x`, "", provider.ErrNotBatch},
		{"trailing comma", []string{"$"}, `[{"id":"a"},]`, "", provider.ErrNotBatch},
		{"byte order mark", []string{"$"}, "\uFEFF[]", "", provider.ErrNotBatch},
		{"mismatched brackets", []string{"$.events"}, `{"events":[{"id":"a"}}}`, "", provider.ErrNotBatch},
		{"100,000 levels", []string{"$"}, `[` + deep + `]`, "", provider.ErrNotBatch},
		{"too many", []string{"$"}, `[` + strings.Repeat("1,", provider.MaxElements) + `1]`, "", provider.ErrBatchTooLarge},
		{"too many on the way", []string{messages}, `{"entry":[` + strings.Repeat(`{"changes":[]},`, provider.MaxElements) + `1]}`, "", provider.ErrBatchTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := batch(t, tt.paths...)
			d := delivery(tt.body)
			elements, err := c.Elements(d)
			var ids []string
			for _, e := range elements {
				ids = append(ids, strings.Join(e.Parts, "|"))
				if e.Start <= 0 || e.End <= e.Start || e.End >= len(tt.body) {
					t.Errorf("range %d to %d", e.Start, e.End)
				}
			}
			if got := strings.Join(ids, " "); got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("%q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
			if body, err := c.Filter(d, func(int) bool { return true }); err == nil && len(body) > 0 && &body[0] != &d.Body[0] {
				t.Error("all wanted: not the body itself")
			}
		})
	}
}

func TestElementSources(t *testing.T) {
	c := compile(t, provider.Spec{ID: "acme", Batch: &provider.Batch{Paths: []string{"$"}, EventID: []provider.Part{{{From: "header", Name: "X-Id"}}, {{From: "query", Name: "q"}}, {{From: "body", Except: []string{"n"}}}},
		EventType: provider.FromJSONPaths("t"), Account: provider.FromJSONPaths("acct")}})
	d := delivery(`[{"n":1,"t":"x","acct":"y"},{"t":"x","acct":"y","n":2},{"n":3, "t":"x","acct":"y"}]`, "X-Id", "h")
	d.Query = "q=1"
	elements, err := c.Elements(d)
	if err != nil || len(elements) != 3 || elements[0].Parts[0] != "h" || elements[0].Parts[1] != "1" || elements[0].Type != "x" || elements[0].Account != "y" {
		t.Fatal(elements, err)
	}
	if elements[0].Parts[2] != elements[2].Parts[2] || elements[0].Parts[2] != elements[1].Parts[2] {
		t.Error("what is left out makes a difference", elements)
	}
	d.Header.Del("X-Id")
	if elements, err := c.Elements(delivery("[1]")); err != nil || len(elements) != 1 || elements[0].Parts != nil {
		t.Error("an element without an ID has no parts:", elements, err)
	}
	plain := compile(t, own(provider.FromJSONPaths("id")))
	if _, err := plain.Elements(d); !errors.Is(err, provider.ErrNotBatch) {
		t.Error(err)
	}
	if _, err := plain.Filter(d, func(int) bool { return true }); !errors.Is(err, provider.ErrNotBatch) {
		t.Error(err)
	}
}

func TestFilter(t *testing.T) {
	for _, tt := range []struct{ name, path, body, keep, want string }{
		{"first", "$", `[{"id":"a"},{"id":"b"},{"id":"c"}]`, "b c", `[{"id":"b"},{"id":"c"}]`},
		{"middle", "$", `[{"id":"a"},{"id":"b"},{"id":"c"}]`, "a c", `[{"id":"a"},{"id":"c"}]`},
		{"last", "$", `[{"id":"a"},{"id":"b"},{"id":"c"}]`, "a b", `[{"id":"a"},{"id":"b"}]`},
		{"last two", "$", `[{"id":"a"},{"id":"b"},{"id":"c"}]`, "a", `[{"id":"a"}]`},
		{"first two", "$", `[{"id":"a"},{"id":"b"},{"id":"c"}]`, "c", `[{"id":"c"}]`},
		{"every other", "$", `[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}]`, "b d", `[{"id":"b"},{"id":"d"}]`},
		{"none", "$", ` [ {"id":"a"} , {"id":"b"} ] `, "", ` [  ] `},
		{"only one", "$", `[{"id":"a"}]`, "", `[]`},
		{"white space", "$", "[\n  {\"id\": \"a\"},\n  {\"id\": \"b\" },\n  {\"id\": \"c\"}\n]\r\n", "b", "[\n  {\"id\": \"b\" }\n]\r\n"},
		{"around untouched", "$.events", `{"n":1.50,"events":[{"id":"a"},{"id":"b","\u0078":[1, 2]}], "z": "é\u00e9"}`, "b", `{"n":1.50,"events":[{"id":"b","\u0078":[1, 2]}], "z": "é\u00e9"}`},
		{"nested", messages, `{"entry":[{"changes":[{"value":{"messages":[{"id":"a"},{"id":"b"}]}},{"id":"c"}]},{"changes":[{"value":{"messages":[{"id":"d"}]}}]}]}`, "b d",
			`{"entry":[{"changes":[{"value":{"messages":[{"id":"b"}]}}]},{"changes":[{"value":{"messages":[{"id":"d"}]}}]}]}`},
		{"an item after its neighbour's elements", messages, `{"entry":[{"id":"e"},{"changes":[{"value":{"messages":[{"id":"a"}]}},{"id":"c"}]}]}`, "c",
			`{"entry":[{"changes":[{"value":{"messages":[]}},{"id":"c"}]}]}`},
		{"an array that doesn't count", "$.events", `{"events":[{"id":"a"}],"events":[{"id":"a"},{"id":"b"}]}`, "b", `{"events":[{"id":"a"}],"events":[{"id":"b"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := batch(t, tt.path)
			d := delivery(tt.body)
			elements, err := c.Elements(d)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Filter(d, func(i int) bool { return strings.Contains(tt.keep, elements[i].Parts[0]) })
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, %v, want %s", got, err, tt.want)
			}
			if string(d.Body) != tt.body {
				t.Error("the body was changed")
			}
		})
	}
}

func TestCompressedBatch(t *testing.T) {
	c := batch(t, "$")
	d := delivery(compressed(t, `[{"id":"a"},{"x":1}]`), "Content-Encoding", "gzip")
	elements, err := c.Elements(d)
	if err != nil || len(elements) != 2 || elements[0].Parts[0] != "a" || elements[0].Start != 1 || elements[0].End != 11 || elements[1].Parts == nil {
		t.Error(elements, err)
	}
	if _, err := c.Filter(d, func(int) bool { return false }); !errors.Is(err, provider.ErrBatchEncoded) {
		t.Error(err)
	}
	d = delivery("[1]", "Content-Encoding", "br")
	if _, err := c.Elements(d); !errors.Is(err, provider.ErrNotBatch) {
		t.Error(err)
	}
}

func manyElements(n int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"email":"someone@example.com","timestamp":1790000000,"event":"delivered","id":"ZHJvcC0xMDk5NDkxOS1%d"}`, i)
	}
	b.WriteString("]\r\n")
	return b.String()
}

func Test100000Elements(t *testing.T) {
	c := batch(t, "$")
	d := delivery(manyElements(provider.MaxElements))
	start := time.Now()
	elements, err := c.Elements(d)
	if err != nil || len(elements) != provider.MaxElements {
		t.Fatal(len(elements), err)
	}
	body, err := c.Filter(d, func(i int) bool { return i%10000 == 7 })
	if err != nil {
		t.Fatal(err)
	}
	if elapsed := time.Since(start); elapsed > 20*time.Second {
		t.Errorf("took %v", elapsed)
	}
	if kept, err := c.Elements(delivery(string(body))); err != nil || len(kept) != 10 || kept[1].Parts[0] != elements[10007].Parts[0] {
		t.Error(len(kept), err)
	}
}

func TestBatchCompileErrors(t *testing.T) {
	id := []provider.Part{provider.FromJSONPaths("id")}
	for name, tt := range map[string]struct {
		want  string
		batch provider.Batch
	}{
		"no path":              {"no paths", provider.Batch{EventID: id}},
		"path":                 {"json path", provider.Batch{Paths: []string{"$.a..b"}, EventID: id}},
		"dollar in the middle": {"json path", provider.Batch{Paths: []string{"$.a[*].$.b..c"}, EventID: id}},
		"element in another":   {"within another", provider.Batch{Paths: []string{"$.a", "$.a[*].b"}, EventID: id}},
		"many members":         {"members", provider.Batch{Paths: []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, EventID: id}},
		"source":               {"part 1", provider.Batch{Paths: []string{"$"}, EventID: []provider.Part{{{From: "x"}}}}},
		"empty fallback":       {"fallback 1", provider.Batch{Paths: []string{"$"}, EventID: id, Fallbacks: [][]provider.Part{{}}}},
	} {
		if _, err := provider.Compile(provider.Spec{ID: "acme", Batch: &tt.batch}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func BenchmarkElements(b *testing.B) {
	c := batch(b, "$")
	body := manyElements(1000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Elements(delivery(body)); err != nil {
			b.Fatal(err)
		}
	}
}
