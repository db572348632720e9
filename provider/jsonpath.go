package provider

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxPathSteps bounds how deep a path goes, and with it every recursion over a body.
const maxPathSteps = 32

// step is one step of a path: a member's name, which also is an array index where it looks like one.
type step struct {
	name  string
	index int // -1: no index
}

var errPath = errors.New("allowed are $.a.b, a.b, a[0].b, a.0.b and a['b.c'], at most 32 steps")

// parsePath parses a JSON path. A number is an index in an array and a name in an object, with or without brackets, because
// only the body tells which of them it is.
func parsePath(path string) ([]step, error) {
	fail := func() ([]step, error) { return nil, fmt.Errorf("json path %q: %w", path, errPath) }
	rest := path
	if rest == "$" {
		return fail() // the whole body is no text
	}
	if strings.HasPrefix(rest, "$.") || strings.HasPrefix(rest, "$[") {
		rest = rest[1:]
	} else if rest != "" && rest[0] != '[' && rest[0] != '.' {
		rest = "." + rest
	} else if rest != "" && rest[0] == '.' {
		return fail()
	}
	var steps []step
	for rest != "" {
		var name string
		switch {
		case rest[0] == '.':
			rest = rest[1:]
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			name, rest = rest[:end], rest[end:]
			if name == "" || name == "*" || strings.ContainsAny(name, "]'\"") {
				return fail()
			}
		case len(rest) > 1 && rest[0] == '[' && (rest[1] == '\'' || rest[1] == '"'):
			end := strings.Index(rest[2:], rest[1:2]+"]")
			if end < 0 {
				return fail()
			}
			name, rest = rest[2:2+end], rest[2+end+2:]
			if name == "" {
				return fail()
			}
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 || indexOf(rest[1:end]) < 0 {
				return fail()
			}
			name, rest = rest[1:end], rest[end+1:]
		default:
			return fail()
		}
		steps = append(steps, step{name, indexOf(name)})
		if len(steps) > maxPathSteps {
			return fail()
		}
	}
	if len(steps) == 0 {
		return fail()
	}
	return steps, nil
}

// indexOf is the array index that s writes, -1 if it writes none: no sign, no leading zero, at most nine digits.
func indexOf(s string) int {
	if s == "" || len(s) > 9 || len(s) > 1 && s[0] == '0' {
		return -1
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// node is a place in a tree of paths.
type node struct {
	step     step
	slot     int // of the path that ends here; -1: none
	children []*node
}

// paths is a set of JSON paths, looked up together in one pass over a body.
type paths struct {
	root node
	size int
}

// add returns the path's slot, the same one for the same steps.
func (p *paths) add(path string) (int, error) {
	steps, err := parsePath(path)
	if err != nil {
		return 0, err
	}
	n := &p.root
	for _, s := range steps {
		child := n.named(s.name)
		if child == nil {
			child = &node{step: s, slot: -1}
			n.children = append(n.children, child)
		}
		n = child
	}
	if n.slot < 0 {
		n.slot = p.size
		p.size++
	}
	return n.slot, nil
}

func (n *node) named(name string) *node {
	for _, c := range n.children {
		if c.step.name == name {
			return c
		}
	}
	return nil
}

func (n *node) at(index int) *node {
	for _, c := range n.children {
		if c.step.index == index {
			return c
		}
	}
	return nil
}
