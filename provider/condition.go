package provider

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// condition is a Condition made ready.
type condition struct {
	source  source
	equals  []string
	pattern *regexp.Regexp
	absent  bool
}

func (c *Compiled) conditions(all []Condition) ([]condition, error) {
	var out []condition
	for _, w := range all {
		s, err := c.source(w.Source)
		if err != nil {
			return nil, fmt.Errorf("when: %w", err)
		}
		next := condition{source: s, equals: w.Equals, absent: w.Absent}
		if w.Pattern != "" {
			if next.pattern, err = whole(w.Pattern); err != nil {
				return nil, fmt.Errorf("when: pattern: %w", err)
			}
		}
		if w.Absent && (len(w.Equals) > 0 || w.Pattern != "") {
			return nil, errors.New("when: what must be absent has no values")
		}
		out = append(out, next)
	}
	return out, nil
}

func (c *Compiled) holdAll(d *Delivery, all []condition) bool {
	for i := range all {
		if !c.holds(d, &all[i]) {
			return false
		}
	}
	return true
}

func (c *Compiled) holds(d *Delivery, w *condition) bool {
	v := c.value(d, &w.source)
	if w.absent {
		return v == ""
	}
	return v != "" && (len(w.equals) == 0 || slices.Contains(w.equals, v)) && (w.pattern == nil || w.pattern.MatchString(v))
}

// holdInHead reports whether the conditions hold as far as headers tell, and whether they tell all.
func (c *Compiled) holdInHead(d *Delivery, all []condition) (holds, sure bool) {
	sure = true
	for i := range all {
		switch all[i].source.from {
		case FromHeader, FromMediaType:
			if !c.holds(d, &all[i]) {
				return false, true
			}
		default:
			sure = false
		}
	}
	return true, sure
}
