package main

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/worker"
)

func layoutCommand() *cli.Command {
	var presets strings.Builder
	for _, p := range worker.Presets() {
		fmt.Fprintf(&presets, "  %-14s %s\n", p.Name, p.About)
	}
	return &cli.Command{
		Name:  "layout",
		Usage: "show, explain, check and choose how an ID's bits are divided",
		Description: `A layout says which bits of an ID are time, worker and sequence, in which order, how
long a tick of the time is, and when the time begins. A cluster has one layout, which
never changes. Its nodes read it from ZooKeeper. A layout is a name, or fields from
the top bit down:
  time=41@1ms,datacenter=5,worker=5,sequence=12,epoch=2020-01-01
or a name and the fields to change: sonyflake,epoch=2026-01-01. The names:
` + presets.String() + `
None of these commands needs a node. docs/layouts.md has more.`,
		Subcommands: []*cli.Command{layoutShowCommand(), layoutExplainCommand(), layoutCheckCommand(), layoutChooseCommand()},
	}
}

// layoutOf parses a layout. Its error begins with what: the name of the flag or argument.
func layoutOf(what, text string) (worker.Layout, error) {
	l, err := worker.ParseLayout(text)
	if err != nil {
		return l, usageError("%s: %w", what, err)
	}
	return l, nil
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

// exactInDoubles is the largest number up to which a double represents every integer.
// JavaScript's numbers are doubles.
const exactInDoubles = 1<<53 - 1

// capacity says how many IDs and workers a layout has, and which time it covers.
type capacity struct {
	IDsPerTick   int64   `json:"ids_per_tick"`
	IDsPerSecond float64 `json:"ids_per_second"` // of one worker
	Workers      int     `json:"workers"`        // that a cluster uses
	Begins       string  `json:"begins"`         // RFC 3339
	BeginsMs     int64   `json:"begins_ms"`
	Ends         string  `json:"ends"`
	EndsMs       int64   `json:"ends_ms"`
}

func capacityOf(l worker.Layout) capacity {
	begin, end := l.Time(worker.Fields{}), l.Expires()
	return capacity{
		IDsPerTick: l.Sequences(), IDsPerSecond: float64(l.Sequences()) / l.Unit.Seconds(), Workers: node.Slots(l),
		Begins: begin.Format(timeFormat), BeginsMs: begin.UnixMilli(), Ends: end.Format(timeFormat), EndsMs: end.UnixMilli(),
	}
}

// day returns the date of a time in Unix milliseconds, or words from the year 9999 on.
func day(ms int64) string {
	t := time.UnixMilli(ms).UTC()
	if t.Year() >= 9999 {
		return "the year 9999 or later"
	}
	return t.Format(time.DateOnly)
}

// startOf returns when a tick begins, in Unix milliseconds, or false for a tick
// outside the layout's time.
func startOf(l worker.Layout, tick int64) (ms int64, ok bool) {
	if tick < 0 || tick >= int64(l.FloorTick(l.Expires().UnixMilli())) {
		return 0, false
	}
	return l.Start(worker.Tick(tick)), true
}

// perSecond formats a rate. A fraction below 100 keeps three significant digits.
func perSecond(rate float64) string {
	if rate < 100 && rate != math.Trunc(rate) {
		return strconv.FormatFloat(rate, 'g', 3, 64)
	}
	return grouped(int64(rate))
}

// years formats a duration in years.
func years(d time.Duration) string {
	return fmt.Sprintf("%.1f years", d.Hours()/24/365.2425)
}
