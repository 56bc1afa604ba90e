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

// bar is a figure in the plot.
type bar struct {
	who   Contender
	value float64
	label string
}

type panel struct {
	title string
	bars  []bar
}

// plot returns an SVG with a transparent background: throughput and p99 of 50 connections
// on TCP.
func (r *Results) plot() string {
	var panels []panel
	for _, p := range pipelines {
		name := gridName("tcp", 50, p)
		title := "50 connections, TCP, no pipelining: requests a second (of the C floor)"
		if p > 1 {
			title = fmt.Sprintf("pipeline %d", p)
		}
		panels = append(panels, r.panel(title, name, throughput, func(who Contender, v float64) string {
			return fmt.Sprintf("%s (%s)", r.rate(name, who), r.ofFloor(name, who))
		}))
	}
	name := gridName("tcp", 50, 1)
	panels = append(panels, r.panel("50 connections, TCP, no pipelining: p99, less is better", name, p99, func(_ Contender, v float64) string {
		return fmt.Sprintf("%.0f us", v)
	}))
	return draw(panels)
}

func (r *Results) panel(title, name string, m Metric, label func(Contender, float64) string) panel {
	p := panel{title: title}
	for _, who := range r.present(name) {
		if v, ok := r.median(name, who, m); ok {
			p.bars = append(p.bars, bar{who, v, label(who, v)})
		}
	}
	return p
}

func draw(panels []panel) string {
	var body strings.Builder
	y := plotMargin
	for _, p := range panels {
		if len(p.bars) == 0 {
			continue
		}
		longest := 0.0
		for _, b := range p.bars {
			longest = max(longest, b.value)
		}
		y += plotPanel - plotBar
		fmt.Fprintf(&body, `<text x="%d" y="%d" font-weight="600">%s</text>`+"\n", plotMargin, y, html.EscapeString(p.title))
		y += plotBar
		for _, b := range p.bars {
			width := 0.0
			if longest > 0 {
				width = b.value / longest * plotBars
			}
			middle := y + plotBar - 3
			fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLeft-8, middle, html.EscapeString(string(b.who)))
			fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`, plotLeft, y, max(width, 1), plotBar, colour(b.who))
			fmt.Fprintf(&body, `<text x="%.1f" y="%d">%s</text>`+"\n", plotLeft+width+6, middle, html.EscapeString(b.label))
			y += plotBar + plotGap
		}
		y += plotGap
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" `+
		`font-family="system-ui, sans-serif" font-size="12" fill="%s" role="img">`+"\n<title>flaked beside Redis, memcached and the floors</title>\n%s</svg>\n",
		plotWidth, y+plotMargin, plotText, body.String())
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
