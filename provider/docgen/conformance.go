package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// conformance is what conformance/run.mjs writes.
type conformance struct {
	Cases      []string
	Deliveries []struct {
		Provider, Variant, SDK string
		Results                []string // by case
	}
}

func readConformance(file string) (*conformance, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := new(conformance)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

func (c *conformance) table() string {
	providers := make(map[string]bool)
	for _, d := range c.Deliveries {
		providers[d.Provider] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d providers: what their own packages sign, or accept when it is signed by hand, is delivered to the built binary. "+
		"*SDK agrees*: the package\naccepts the delivery with the right key and refuses it with another. "+
		"Of the cases, *accepted* and *copy* must be processed once; all others must get 401.\n\n", len(providers))
	fmt.Fprintf(&b, "| provider | package | %s |\n|---|---|%s\n", strings.Join(c.Cases, " | "), strings.Repeat("---|", len(c.Cases)))
	for _, d := range c.Deliveries {
		name := d.Provider
		if d.Variant != "" {
			name += ", " + d.Variant
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, code(d.SDK), strings.Join(d.Results, " | "))
	}
	b.WriteString("\n`-` means that the provider has no such thing.\n")
	return b.String()
}
