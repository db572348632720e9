package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxElements bounds the items of all arrays of a batch.
const MaxElements = 100_000

// Element is one event of a batch.
type Element struct {
	// Identity is the element's; Parts is nil where it has none.
	Identity
	// Start and End are where its bytes are in the body, once a Content-Encoding is undone.
	Start, End int
}

// Elements finds the events of a batch, in the order of the body. The error is [ErrNotBatch] for a delivery that is none, which may
// still have an identity of its own, or [ErrBatchTooLarge]. A batch may have no elements. Of duplicate JSON members the last
// counts.
func (c *Compiled) Elements(d *Delivery) ([]Element, error) {
	if c.batch == nil {
		return nil, ErrNotBatch
	}
	r, err := c.batchOf(d, c.batch)
	if err != nil {
		return nil, err
	}
	out := make([]Element, len(r.elements))
	for i, at := range r.elements {
		element := r.delivery(d, i)
		identity, _ := c.batch.element.Identify(&element) // the error says that Parts is nil
		out[i] = Element{identity, int(at.start), int(at.end)}
	}
	return out, nil
}

// Filter returns the body with only those elements of the batch that keep wants, by their index in [Compiled.Elements]: their bytes
// and everything around are as they were, down to the white space; an array may be left empty. If all are wanted it is the body itself.
func (c *Compiled) Filter(d *Delivery, keep func(i int) bool) ([]byte, error) {
	if c.batch == nil {
		return nil, ErrNotBatch
	}
	r, err := c.batchOf(d, c.batch)
	switch {
	case err != nil:
		return nil, err
	case len(r.body) != len(d.Body) || len(d.Body) > 0 && &r.body[0] != &d.Body[0]:
		return nil, ErrBatchEncoded
	}
	var cuts []span
	for i := range r.arrays {
		cuts = r.arrays[i].cuts(cuts, keep)
	}
	if len(cuts) == 0 {
		return d.Body, nil
	}
	slices.SortFunc(cuts, func(a, b span) int { return int(a.start - b.start) })
	out := make([]byte, 0, len(d.Body))
	at := int64(0)
	for _, cut := range cuts {
		out = append(out, d.Body[at:cut.start]...)
		at = cut.end
	}
	return append(out, d.Body[at:]...), nil
}

// cuts appends what must go, commas included, for the array to lose the items that are not wanted.
func (a *array) cuts(cuts []span, keep func(int) bool) []span {
	gone := func(i int) bool { return a.items[i].element >= 0 && !keep(a.items[i].element) }
	for i := 0; i < len(a.items); i++ {
		if !gone(i) {
			continue
		}
		first := i
		for i+1 < len(a.items) && gone(i+1) {
			i++
		}
		switch {
		case i+1 < len(a.items):
			cuts = append(cuts, span{a.items[first].start, a.items[i+1].start})
		case first > 0:
			cuts = append(cuts, span{a.items[first-1].end, a.items[i].end})
		default:
			cuts = append(cuts, span{a.items[first].start, a.items[i].end})
		}
	}
	return cuts
}

// batch is a Batch made ready.
type batch struct {
	root    batchNode
	element *Compiled // reads one element
}

// batchNode is a place in the tree of a batch's paths.
type batchNode struct {
	children []*batchNode
	name     string
	items    *batchNode // of the array here
	leaf     bool       // an element is here
}

// maxBatchChildren bounds how many members of one object lead to elements.
const maxBatchChildren = 8

func newBatch(from *Batch) (*batch, error) {
	b := &batch{element: &Compiled{paths: newPaths()}}
	b.element.spec = Spec{EventID: from.EventID, Fallbacks: from.Fallbacks, EventType: from.EventType, Account: from.Account}
	if err := b.element.setSources(); err != nil {
		return nil, err
	}
	if len(from.Paths) == 0 {
		return nil, errors.New("has no paths")
	}
	for _, path := range from.Paths {
		if err := b.add(path); err != nil {
			return nil, fmt.Errorf("path %q: %w", path, err)
		}
	}
	return b, nil
}

// add adds a path such as $.entry[*].messages[*] to the tree.
func (b *batch) add(path string) error {
	n := &b.root
	if !strings.HasSuffix(path, "[*]") {
		path += "[*]"
	}
	stretches := strings.Split(path, "[*]")
	for i, stretch := range stretches[:len(stretches)-1] {
		if i > 0 {
			stretch = strings.TrimPrefix(stretch, ".")
		}
		if stretch != "" && (stretch != "$" || i > 0) {
			steps, err := parsePath(stretch)
			if err != nil {
				return err
			}
			for _, s := range steps {
				n = n.member(s.name)
			}
			if len(n.children) > maxBatchChildren {
				return fmt.Errorf("more than %d members", maxBatchChildren)
			}
		}
		if n.items == nil {
			n.items = new(batchNode)
		}
		n = n.items
	}
	n.leaf = true
	return b.root.consistent()
}

var errBatchPaths = errors.New("an element must not be within another one")

func (n *batchNode) consistent() error {
	if n.leaf && (n.items != nil || len(n.children) > 0) {
		return errBatchPaths
	}
	if len(n.children) > maxBatchChildren {
		return fmt.Errorf("more than %d members lead to elements", maxBatchChildren)
	}
	for _, child := range n.children {
		if err := child.consistent(); err != nil {
			return err
		}
	}
	if n.items != nil {
		return n.items.consistent()
	}
	return nil
}

func (n *batchNode) member(name string) *batchNode {
	for _, child := range n.children {
		if child.name == name {
			return child
		}
	}
	child := &batchNode{name: name}
	n.children = append(n.children, child)
	return child
}

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
