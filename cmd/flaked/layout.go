package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/worker"
)

func layoutCommand() *cli.Command {
	return &cli.Command{
		Name:      "layout",
		Usage:     "draw the bits of a layout and print its capacity, or list the named layouts",
		ArgsUsage: "[LAYOUT]",
		Description: `A layout says which bits of an ID are time, worker and sequence, in which order, how
long a tick of the time is, and when the time begins. A cluster has one layout, which
never changes: see ` + "`flaked cluster show`" + `. A layout is a name, or fields from the top
bit down, or a name and the fields to change. The command needs no node.

Examples:
  flaked layout                             the named layouts
  flaked layout sonyflake
  flaked layout sonyflake,epoch=2026-01-01
  flaked layout time=41@1ms,worker=8,sequence=14,epoch=2026-01-01 -o json`,
		Flags:  []cli.Flag{outputFlag()},
		Action: layout,
	}
}

func layout(c *cli.Context) error {
	now := time.Now()
	switch c.NArg() {
	case 0:
		var all []layoutReport
		for _, p := range worker.Presets() {
			all = append(all, describeLayout(p.Layout, now))
		}
		return show(c, all, listLayouts)
	case 1:
		l, err := worker.ParseLayout(c.Args().First())
		if err != nil {
			return usageError("%w", err)
		}
		r := describeLayout(l, now)
		return show(c, r, func(w io.Writer) error { return showLayout(w, l, r) })
	}
	return usageError("expected one layout, got %d arguments. Write its fields without blanks", c.NArg())
}

// listLayouts prints the named layouts.
func listLayouts(w io.Writer) error {
	var t textTable
	t.add("NAME", "IDS A SECOND", "WORKERS", "IDS END", "")
	for _, p := range worker.Presets() {
		r := describeLayout(p.Layout, time.Time{})
		t.add(p.Name, grouped(int64(r.IDsPerSecond)), grouped(int64(r.Workers)), r.Ends[:len(time.DateOnly)], p.About)
	}
	return t.print(w)
}

// layoutName returns a layout's fields, after its name if it has one.
func layoutName(l worker.Layout) string {
	if name := worker.PresetName(l); name != "" {
		return name + ": " + l.String()
	}
	return l.String()
}

// usableNow returns the reason why a layout cannot make IDs at now, nil if it can.
func usableNow(l worker.Layout, now time.Time) error {
	const advice = "Give it another epoch, as in %s,epoch=%s"
	name := cmp.Or(worker.PresetName(l), "...")
	begin, end := l.Time(worker.Fields{}), l.Expires()
	today := now.UTC().Format(time.DateOnly)
	switch {
	case !now.Before(end):
		return fmt.Errorf("its time field was used up on %s. "+advice, end.Format(time.DateOnly), name, today)
	case now.Before(begin):
		return fmt.Errorf("its epoch, %s, is in the future. "+advice, begin.Format(time.RFC3339), name, today)
	}
	return nil
}

// fieldReport is one field of a layout.
type fieldReport struct {
	Name   string `json:"name"`
	Bits   uint8  `json:"bits"`
	High   uint8  `json:"high"` // top bit, with 0 as an ID's lowest
	Low    uint8  `json:"low"`
	Values int64  `json:"values"` // how many
}

// layoutReport is the JSON of `layout`.
type layoutReport struct {
	Layout       string        `json:"layout"`
	Name         string        `json:"name,omitempty"`
	TickMs       int64         `json:"tick_ms"`
	Fields       []fieldReport `json:"fields"`
	IDsPerTick   int64         `json:"ids_per_tick"`
	IDsPerSecond float64       `json:"ids_per_second"` // of one worker
	Workers      int           `json:"workers"`        // that a cluster uses
	Begins       string        `json:"begins"`         // RFC 3339
	BeginsMs     int64         `json:"begins_ms"`
	Ends         string        `json:"ends"`
	EndsMs       int64         `json:"ends_ms"`
	// Unusable is the reason why no ID can be made now, "" if IDs can be made.
	Unusable string `json:"unusable,omitempty"`
}

func describeLayout(l worker.Layout, now time.Time) layoutReport {
	begin, end := l.Time(worker.Fields{}), l.Expires()
	r := layoutReport{
		Layout: l.String(), Name: worker.PresetName(l), TickMs: l.Unit.Milliseconds(),
		IDsPerTick: l.Sequences(), IDsPerSecond: float64(l.Sequences()) / l.Unit.Seconds(), Workers: node.Slots(l),
		Begins: begin.Format(timeFormat), BeginsMs: begin.UnixMilli(), Ends: end.Format(timeFormat),
		EndsMs: end.UnixMilli(),
	}
	for _, p := range l.Parts() {
		r.Fields = append(r.Fields, fieldReport{p.Field.String(), p.Bits, p.Shift + p.Bits - 1, p.Shift, 1 << p.Bits})
	}
	if err := usableNow(l, now); err != nil {
		r.Unusable = err.Error()
	}
	return r
}

// perSecond formats a rate. A fraction below 100 keeps three significant digits.
func perSecond(rate float64) string {
	if rate < 100 && rate != math.Trunc(rate) {
		return strconv.FormatFloat(rate, 'g', 3, 64)
	}
	return grouped(int64(rate))
}

// letters stand for the fields in a picture.
var letters = map[worker.Field]string{
	worker.FieldTime: "t", worker.FieldRollback: "r", worker.FieldSegment: "g", worker.FieldDatacenter: "d",
	worker.FieldWorker: "w", worker.FieldSequence: "s",
}

func showLayout(w io.Writer, l worker.Layout, r layoutReport) error {
	picture := strings.Repeat("0", 63-int(r.Fields[0].High)) // the sign, and unused bits
	var t textTable
	t.add("", "FIELD", "BITS", "FROM-TO", "HOLDS")
	for i, p := range l.Parts() {
		f := r.Fields[i]
		holds := fmt.Sprintf("0 to %s", grouped(f.Values-1))
		if p.Field == worker.FieldTime {
			holds = fmt.Sprintf("ticks of %s since %s", l.Unit, r.Begins)
		}
		t.add(letters[p.Field], f.Name, fmt.Sprint(f.Bits), fmt.Sprintf("%d-%d", f.High, f.Low), holds)
		picture += " " + strings.Repeat(letters[p.Field], int(p.Bits))
	}
	fmt.Fprintf(w, "%s\n\n%s\n\n", layoutName(l), picture)
	if err := t.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	rows := textTable{
		{"a worker makes", fmt.Sprintf("%s IDs a tick, %s a second", grouped(r.IDsPerTick), perSecond(r.IDsPerSecond))},
		{"workers", grouped(int64(r.Workers))},
		{"IDs end", time.UnixMilli(r.EndsMs).UTC().Format(time.DateOnly)},
	}
	if l.Workers() > r.Workers {
		rows[1][1] += fmt.Sprintf(" of %s (a cluster uses no more)", grouped(int64(l.Workers())))
	}
	if l.DatacenterBits > 0 {
		rows[1][1] += fmt.Sprintf(", in each of %d datacenters", l.Datacenters())
	}
	if r.Unusable != "" {
		rows.add("usable now", "no: "+r.Unusable)
	}
	return rows.print(w)
}
