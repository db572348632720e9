package provider

import (
	"slices"
	"strings"
	"time"
)

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

// catalogue holds a function for each provider, so that nobody can change an entry that another one uses.
var catalogue = []func() Spec{
	github,
	shopify,
	standardWebhooks,
	stripe,
	svix,
}

// Lookup returns the catalogue's entry with the ID. The caller may change it.
func Lookup(id string) (Spec, bool) {
	for _, entry := range catalogue {
		if s := entry(); s.ID == id {
			return s, true
		}
	}
	return Spec{}, false
}

// All returns the catalogue, sorted by ID. The caller may change it.
func All() []Spec {
	all := make([]Spec, len(catalogue))
	for i, entry := range catalogue {
		all[i] = entry()
	}
	slices.SortFunc(all, func(a, b Spec) int { return strings.Compare(a.ID, b.ID) })
	return all
}
