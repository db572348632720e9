package stage

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Panel is a panel of the dashboard.
type Panel struct {
	Title, Unit string
	Queries     []Query
	// X, Y, W and H are its place on Grafana's grid, which is 24 wide.
	X, Y, W, H int
}

// Query is one query of a panel.
type Query struct{ Expr, Legend string }

// Dashboard reads the panels of a Grafana dashboard.
func Dashboard(file string) ([]Panel, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dashboard struct {
		Panels []struct {
			Title       string
			GridPos     struct{ X, Y, W, H int }
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var panels []Panel
	for _, p := range dashboard.Panels {
		panel := Panel{Title: p.Title, Unit: p.FieldConfig.Defaults.Unit, X: p.GridPos.X, Y: p.GridPos.Y, W: p.GridPos.W, H: p.GridPos.H}
		for _, target := range p.Targets {
			panel.Queries = append(panel.Queries, Query{target.Expr, target.LegendFormat})
		}
		panels = append(panels, panel)
	}
	return panels, nil
}

// Filled is an expression with Grafana's variables filled in: all providers, and rates over an interval.
func (q Query) Filled(interval string) string {
	return strings.NewReplacer("$__rate_interval", interval, "$provider", ".*").Replace(q.Expr)
}
