package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/examples/observability/stage"
)

// The drawing's measures, in pixels. Grafana's grid is 24 wide.
const (
	column, row  = 50, 26
	width        = 24 * column
	head, margin = 40, 8
	left, top    = 52, 28 // of a graph within its panel
	bottom       = 40
)

var colours = []string{"#3274d9", "#e0752d", "#299c46", "#e24d42", "#8f3bb8", "#6d6d6d", "#c9a400", "#0a9396"}

// colour is the line's place among the colours, but for words that have a meaning.
func colour(name string, i int) string {
	switch name {
	case "processed":
		return "#299c46"
	case "failed":
		return "#e24d42"
	case "duplicate":
		return "#3274d9"
	case "invalid_signature":
		return "#8f3bb8"
	}
	return colours[i%len(colours)]
}

// drawing is an SVG in the making.
type drawing struct {
	from, to time.Time
	title    string
	body     bytes.Buffer
	height   int
}

func newDrawing(from, to time.Time, title string) *drawing {
	return &drawing{from: from, to: to, title: title}
}

func (d *drawing) bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="11">`+"\n", width, d.height+margin)
	fmt.Fprintf(&b, `<title>%s</title><rect width="100%%" height="100%%" fill="#f4f5f5"/>`+"\n", escape(d.title))
	fmt.Fprintf(&b, `<text x="%d" y="25" font-size="14" fill="#24292e">%s</text>`+"\n", margin, escape(d.title))
	b.Write(d.body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// panel draws the lines of one panel of the dashboard.
func (d *drawing) panel(p stage.Panel, lines []stage.Series, names []string) {
	x, y := float64(p.X*column+margin/2), float64(head+p.Y*row+margin/2)
	w, h := float64(p.W*column-margin), float64(p.H*row-margin)
	d.height = max(d.height, int(y+h))
	fmt.Fprintf(&d.body, `<g transform="translate(%.0f %.0f)"><rect width="%.0f" height="%.0f" rx="3" fill="#fff" stroke="#dce0e4"/>`, x, y, w, h)
	fmt.Fprintf(&d.body, `<text x="10" y="18" font-weight="600" fill="#24292e">%s</text>`+"\n", escape(p.Title))
	inner, depth := w-left-12, h-top-bottom
	highest := 0.0
	for _, line := range lines {
		for _, point := range line.Points {
			if !math.IsNaN(point.Value) && !math.IsInf(point.Value, 0) {
				highest = max(highest, point.Value)
			}
		}
	}
	ceiling := niceCeiling(highest)
	for i := range 3 {
		level := top + depth - depth*float64(i)/2
		fmt.Fprintf(&d.body, `<path d="M%d %.1fH%.1f" stroke="#e9edf2"/><text x="%d" y="%.1f" text-anchor="end" fill="#6b7280">%s</text>`+"\n",
			left, level, left+inner, left-6, level+4, escape(amount(ceiling*float64(i)/2, p.Unit)))
	}
	parts := len(story)
	for i := range parts {
		at := left + inner*float64(i)/float64(parts)
		fmt.Fprintf(&d.body, `<path d="M%.1f %dV%.1f" stroke="#e9edf2"/>`, at, top, top+depth)
		passed := d.to.Sub(d.from) * time.Duration(i) / time.Duration(parts)
		fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" fill="#9aa0a8" font-size="9">%s</text>`+"\n", at+2, top+depth+11, passed.Round(time.Second))
	}
	for i, line := range lines {
		fmt.Fprintf(&d.body, `<path d="%s" fill="none" stroke="%s" stroke-width="1.4"/>`+"\n", d.path(line, inner, depth, ceiling), colour(names[i], i))
	}
	at := 10.0
	for i, name := range names {
		if at > w-60 {
			break
		}
		fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="9" height="3" fill="%s"/><text x="%.1f" y="%.1f" fill="#464c54">%s</text>`+"\n",
			at, h-12, colour(name, i), at+12, h-8, escape(name))
		at += 24 + 6*float64(len(name))
	}
	d.body.WriteString("</g>\n")
}

// path is a line; it has gaps where there is no value.
func (d *drawing) path(line stage.Series, inner, depth, ceiling float64) string {
	var b strings.Builder
	pen, last := "M", d.from
	for _, point := range line.Points {
		if math.IsNaN(point.Value) || math.IsInf(point.Value, 0) {
			pen = "M"
			continue
		}
		if point.At.Sub(last) > 3*time.Second {
			pen = "M"
		}
		last = point.At
		x := left + inner*float64(point.At.Sub(d.from))/float64(d.to.Sub(d.from))
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, x, top+depth-depth*point.Value/ceiling)
		pen = "L"
	}
	return b.String()
}

// niceCeiling is 1, 2 or 5 times a power of ten, and at least v.
func niceCeiling(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v {
			return m * power
		}
	}
	return 10 * power
}

func amount(v float64, unit string) string {
	switch {
	case unit == "percentunit":
		return fmt.Sprintf("%.3g%%", v*100)
	case unit == "s" && v > 0 && v < 1:
		return fmt.Sprintf("%.3g ms", v*1000)
	case unit == "s":
		return fmt.Sprintf("%.3g s", v)
	case unit == "reqps":
		return fmt.Sprintf("%.3g/s", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// legend fills a legend in as Grafana does.
func legend(format string, labels map[string]string) string {
	for name, value := range labels {
		format = strings.ReplaceAll(format, "{{"+name+"}}", value)
	}
	return format
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a bytes.Buffer takes everything
	return b.String()
}
