//go:build linux

package main

import (
	"fmt"
	"html"
	"strings"
)

// Sizes in the plot, in its own units.
const (
	plotWidth  = 860
	plotLeft   = 190 // names
	plotBar    = 14
	plotGap    = 5
	plotPanel  = 34 // above a panel, with its title
	plotMargin = 16
	plotBars   = plotWidth - plotLeft - 130 // the longest bar, without its label
)

// Colours that are distinct and legible on white and on black.
const (
	plotText   = "#7a7f87"
	plotFlaked = "#1f9d78"
	plotPeer   = "#8f8fd6"
	plotFloor  = "#a0a4ab"
)

// plot returns an SVG with a transparent background: throughput and p99 of 50 connections
// on TCP.
func (r *Results) plot() string {
	d := drawing{r: r, y: plotMargin}
	for _, p := range pipelines {
		name := gridName("tcp", 50, p)
		title := "50 connections, TCP, no pipelining: requests a second (of the C floor)"
		if p > 1 {
			title = fmt.Sprintf("pipeline %d", p)
		}
		d.panel(title, name, throughput, func(who Contender, _ float64) string {
			return fmt.Sprintf("%s (%s)", r.rate(name, who), r.ofFloor(name, who))
		})
	}
	d.panel("50 connections, TCP, no pipelining: p99, less is better", gridName("tcp", 50, 1), p99, func(_ Contender, v float64) string {
		return fmt.Sprintf("%.0f us", v)
	})
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" `+
		`font-family="system-ui, sans-serif" font-size="12" fill="%s" role="img">`+"\n<title>flaked beside Redis, memcached and the floors</title>\n%s</svg>\n",
		plotWidth, d.y+plotMargin, plotText, d.body.String())
}

// drawing is the plot as far as it has been drawn, down to y.
type drawing struct {
	r    *Results
	body strings.Builder
	y    int
}

// panel draws a title, and a bar for each contender that was measured in a case.
func (d *drawing) panel(title, name string, m Metric, label func(Contender, float64) string) {
	shown := d.r.present(name)
	if len(shown) == 0 {
		return
	}
	longest := 0.0
	for _, who := range shown {
		value, _ := d.r.median(name, who, m)
		longest = max(longest, value)
	}
	d.y += plotPanel - plotBar
	fmt.Fprintf(&d.body, `<text x="%d" y="%d" font-weight="600">%s</text>`+"\n", plotMargin, d.y, html.EscapeString(title))
	d.y += plotBar
	for _, who := range shown {
		value, _ := d.r.median(name, who, m)
		width := 0.0
		if longest > 0 {
			width = value / longest * plotBars
		}
		middle := d.y + plotBar - 3
		fmt.Fprintf(&d.body, `<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLeft-8, middle, html.EscapeString(string(who)))
		fmt.Fprintf(&d.body, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`, plotLeft, d.y, max(width, 1), plotBar, colour(who))
		fmt.Fprintf(&d.body, `<text x="%.1f" y="%d">%s</text>`+"\n", plotLeft+width+6, middle, html.EscapeString(label(who, value)))
		d.y += plotBar + plotGap
	}
	d.y += plotGap
}

func colour(who Contender) string {
	switch {
	case strings.HasPrefix(string(who), "flaked"):
		return plotFlaked
	case strings.HasPrefix(string(who), "floor"):
		return plotFloor
	}
	return plotPeer
}
