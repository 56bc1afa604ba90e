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
	"github.com/flaked/flaked/internal/ops/words"
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
  flaked layout time=41@1ms,worker=8,sequence=14,epoch=2026-01-01`,
		Action: layout,
	}
}

func layout(c *cli.Context) error {
	switch c.NArg() {
	case 0:
		return listLayouts(c.App.Writer)
	case 1:
		l, err := worker.ParseLayout(c.Args().First())
		if err != nil {
			return usageError("%w", err)
		}
		return showLayout(c.App.Writer, l, time.Now())
	}
	return usageError("expected one layout, got %d arguments. Write its fields without blanks", c.NArg())
}

func listLayouts(w io.Writer) error {
	var t textTable
	t.add("NAME", "IDS A SECOND", "WORKERS", "IDS END", "")
	for _, p := range worker.Presets() {
		t.add(p.Name, words.Grouped(int64(perSecond(p.Layout))), words.Grouped(int64(node.Slots(p.Layout))),
			p.Layout.Expires().Format(time.DateOnly), p.About)
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

// checkUsable returns the reason why a layout cannot make IDs at now, nil if it can.
func checkUsable(l worker.Layout, now time.Time) error {
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

// perSecond returns how many IDs a worker makes in a second.
func perSecond(l worker.Layout) float64 { return float64(l.Sequences()) / l.Unit.Seconds() }

// rateText formats a rate. A fraction below 100 keeps three significant digits.
func rateText(rate float64) string {
	if rate < 100 && rate != math.Trunc(rate) {
		return strconv.FormatFloat(rate, 'g', 3, 64)
	}
	return words.Grouped(int64(rate))
}

// shardsText says for which n the remainders of IDs are evenly distributed.
func shardsText(l worker.Layout) string {
	if n := l.Even(); n > 1 {
		return fmt.Sprintf("even for n up to %s, at any rate", words.Grouped(n))
	}
	return "even for an odd n only: the lowest field is not a sequence of 2 bits or more"
}

// fieldLetters stand for the fields in a picture.
var fieldLetters = map[worker.Field]string{
	worker.FieldTime: "t", worker.FieldRollback: "r", worker.FieldSegment: "g", worker.FieldDatacenter: "d",
	worker.FieldWorker: "w", worker.FieldSequence: "s",
}

func showLayout(w io.Writer, l worker.Layout, now time.Time) error {
	parts := l.Parts()
	picture := strings.Repeat("0", 64-int(parts[0].Shift+parts[0].Bits)) // the sign, and unused bits
	var t textTable
	t.add("", "FIELD", "BITS", "FROM-TO", "HOLDS")
	for _, p := range parts {
		holds := fmt.Sprintf("0 to %s", words.Grouped(1<<p.Bits-1))
		if p.Field == worker.FieldTime {
			holds = fmt.Sprintf("ticks of %s since %s", l.Unit, l.Time(worker.Fields{}).Format(words.TimeFormat))
		}
		t.add(fieldLetters[p.Field], p.Field.String(), fmt.Sprint(p.Bits),
			fmt.Sprintf("%d-%d", p.Shift+p.Bits-1, p.Shift), holds)
		picture += " " + strings.Repeat(fieldLetters[p.Field], int(p.Bits))
	}
	fmt.Fprintf(w, "%s\n\n%s\n\n", layoutName(l), picture)
	if err := t.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	workers := words.Grouped(int64(node.Slots(l)))
	if l.Workers() > node.Slots(l) {
		workers += fmt.Sprintf(" of %s (a cluster uses no more)", words.Grouped(int64(l.Workers())))
	}
	if l.DatacenterBits > 0 {
		workers += fmt.Sprintf(", in each of %d datacenters", l.Datacenters())
	}
	rows := textTable{
		{"a worker makes", fmt.Sprintf("%s IDs a tick, %s a second", words.Grouped(l.Sequences()),
			rateText(perSecond(l)))},
		{"workers", workers},
		{"IDs end", l.Expires().Format(time.DateOnly)},
		{"shards, id % n", shardsText(l)},
	}
	if err := checkUsable(l, now); err != nil {
		rows.add("usable now", "no: "+err.Error())
	}
	return rows.print(w)
}
