package provider

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// batchReading is what has been read of a batch.
type batchReading struct {
	of       *batch
	body     []byte // without its Content-Encoding
	elements []span
	arrays   []array
}

// array is one whose items are elements, or lead to some.
type array struct {
	items []item
	dead  bool // a later member of the same name took its place
}

type item struct {
	span
	element int // -1: none
}

// delivery is the i-th element as a delivery of its own.
func (r *batchReading) delivery(d *Delivery, i int) Delivery {
	at := r.elements[i]
	out := Delivery{Method: d.Method, URL: d.URL, Query: d.Query, Header: d.Header, Body: r.body[at.start:at.end:at.end], Placeholder: d.Placeholder}
	if len(d.Header["Content-Encoding"]) > 0 {
		out.Header = d.Header.Clone()
		out.Header.Del("Content-Encoding")
	}
	return out
}

// batchOf reads d's body as a batch, once for each.
func (c *Compiled) batchOf(d *Delivery, b *batch) (*batchReading, error) {
	r := c.reading(d)
	if r.batch == nil || r.batch.of != b {
		r.batch = &batchReading{of: b}
		r.batchErr = ErrNotBatch
		if body, ok := c.plain(d); ok {
			r.batch.body = body
			r.batchErr = r.batch.read()
		}
	}
	return r.batch, r.batchErr
}

func (r *batchReading) read() error {
	w := walker{scanner: newScanner(r.body), r: r}
	defer w.free()
	err := w.value(&r.of.root)
	switch {
	case errors.Is(err, ErrBatchTooLarge):
	case err != nil || w.end() != nil || w.root == 0:
		err = ErrNotBatch
	}
	if err != nil {
		r.arrays = nil
		return err
	}
	r.settle()
	return nil
}

// settle numbers the elements, in the order of the body.
func (r *batchReading) settle() {
	r.arrays = slices.DeleteFunc(r.arrays, func(a array) bool { return a.dead })
	var all []*item
	for i := range r.arrays {
		for j := range r.arrays[i].items {
			if it := &r.arrays[i].items[j]; it.element >= 0 {
				all = append(all, it)
			}
		}
	}
	slices.SortFunc(all, func(a, b *item) int { return int(a.start - b.start) })
	r.elements = make([]span, len(all))
	for i, it := range all {
		it.element = i
		r.elements[i] = it.span
	}
}

// walker reads a body along a batch's paths. It recurses along them only, so that a body never decides how deep.
type walker struct {
	*scanner
	r     *batchReading
	items int
	root  int // outermost arrays that count
	depth int // of arrays
}

func (w *walker) value(n *batchNode) error {
	switch kind := w.dec.PeekKind(); {
	case kind == '[' && n.items != nil:
		return w.array(n.items)
	case kind == '{' && len(n.children) > 0:
		return w.object(n)
	}
	return w.dec.SkipValue()
}

// object looks into the members that lead to elements.
func (w *walker) object(n *batchNode) error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	var seen [maxBatchChildren]struct{ from, to, root int }
	for w.dec.PeekKind() != '}' {
		quoted, err := w.dec.ReadValue()
		if err != nil {
			return err
		}
		i := w.child(n, quoted)
		if i < 0 {
			if err := w.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		for j := seen[i].from; j < seen[i].to; j++ {
			w.r.arrays[j].dead = true
		}
		w.root -= seen[i].root
		from, root := len(w.r.arrays), w.root
		if err := w.value(n.children[i]); err != nil {
			return err
		}
		seen[i].from, seen[i].to, seen[i].root = from, len(w.r.arrays), w.root-root
	}
	_, err := w.dec.ReadToken()
	return err
}

func (w *walker) child(n *batchNode, quoted jsontext.Value) int {
	name := w.unquote(quoted)
	return slices.IndexFunc(n.children, func(child *batchNode) bool { return child.name == string(name) })
}

// array reads the items. One that leads to no element is an element.
func (w *walker) array(n *batchNode) error {
	if w.depth == 0 {
		w.root++
	}
	w.depth++
	at := len(w.r.arrays)
	w.r.arrays = append(w.r.arrays, array{})
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	for w.dec.PeekKind() != ']' {
		if w.items++; w.items > MaxElements {
			return ErrBatchTooLarge
		}
		it, err := w.item(n)
		if err != nil {
			return err
		}
		w.r.arrays[at].items = append(w.r.arrays[at].items, it)
	}
	w.depth--
	_, err := w.dec.ReadToken()
	return err
}

func (w *walker) item(n *batchNode) (item, error) {
	kind := w.dec.PeekKind()
	if n.leaf || kind != '{' && kind != '[' {
		v, err := w.dec.ReadValue()
		end := w.dec.InputOffset()
		return item{span{end - int64(len(v)), end}, 0}, err
	}
	below := len(w.r.arrays)
	// What lies before the value is white space and a comma.
	start := w.dec.InputOffset()
	for c := w.r.body[start]; c != '{' && c != '['; c = w.r.body[start] {
		start++
	}
	if err := w.value(n); err != nil {
		return item{}, err
	}
	it := item{span{start, w.dec.InputOffset()}, 0}
	for _, a := range w.r.arrays[below:] {
		if !a.dead && slices.ContainsFunc(a.items, func(it item) bool { return it.element >= 0 }) {
			it.element = -1
			return it, nil
		}
	}
	// The arrays below have no elements, so nothing is cut there.
	return it, nil
}
