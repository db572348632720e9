package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
