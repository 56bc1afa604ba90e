package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/worker"
)

func layoutShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "draw the bits of a layout, and print its capacity",
		ArgsUsage: "[LAYOUT]",
		Description: `Draws the 64 bits of an ID. Prints how many IDs a worker can make, how many workers
there are, when the time field is used up, and where the layout was found.

Without LAYOUT, the command finds it as follows:
` + layoutHelp + `
Exits with 4, after printing, if the layout was assumed.

Examples:
  flaked layout show sonyflake
  flaked layout show time=41@1ms,worker=8,sequence=14,epoch=2026-01-01
  flaked layout show --zk zk1:2181 -o json`,
		Flags:  append([]cli.Flag{outputFlag()}, layoutSourceFlags()...),
		Action: layoutShow,
	}
}

// fieldReport is one field of a layout.
type fieldReport struct {
	Name   string `json:"name"`
	Bits   uint8  `json:"bits"`
	High   uint8  `json:"high"` // top bit, with 0 as an ID's lowest
	Low    uint8  `json:"low"`
	Values int64  `json:"values"` // how many
}

// layoutReport is the JSON of `layout show`.
type layoutReport struct {
	Layout string `json:"layout"`
	// From says where the layout was found: see foundLayout.
	From   string        `json:"layout_from,omitempty"`
	Name   string        `json:"name,omitempty"`
	TickMs int64         `json:"tick_ms"`
	Fields []fieldReport `json:"fields"`
	capacity
	// Step is the difference between consecutive IDs of one worker in a tick.
	Step int64 `json:"step"`
	// JavaScriptUntilMs is the time until which IDs are exact as numbers in JavaScript.
	JavaScriptUntilMs int64 `json:"javascript_until_ms"`
	// Unusable is the reason why no ID can be made now, "" if IDs can be made.
	Unusable string `json:"unusable,omitempty"`
}

func describeLayout(l worker.Layout, now time.Time) layoutReport {
	r := layoutReport{Layout: l.String(), Name: worker.PresetName(l), TickMs: l.Unit.Milliseconds(), capacity: capacityOf(l)}
	for _, p := range l.Parts() {
		r.Fields = append(r.Fields, fieldReport{p.Field.String(), p.Bits, p.Shift + p.Bits - 1, p.Shift, 1 << p.Bits})
		if p.Field == worker.FieldSequence {
			r.Step = 1 << p.Shift
		}
	}
	// Exact until the first tick that has a larger ID.
	r.JavaScriptUntilMs = r.EndsMs
	if ms, ok := startOf(l, int64(exactInDoubles+1)>>r.Fields[0].Low); ok {
		r.JavaScriptUntilMs = ms
	}
	if err := usableNow(l, now); err != nil {
		r.Unusable = err.Error()
	}
	return r
}

func layoutShow(c *cli.Context) error {
	found, err := layoutArgument(c)
	if err != nil {
		return err
	}
	l, now := found.layout, time.Now()
	r := describeLayout(l, now)
	r.From = found.from
	if err := show(c, r, func(w io.Writer) error { return showLayout(w, l, r, now) }); err != nil {
		return err
	}
	return found.doubt()
}

// layoutArgument returns the layout that is given as the only argument, or else the one
// that findLayout finds.
func layoutArgument(c *cli.Context) (foundLayout, error) {
	switch c.NArg() {
	case 0:
		return findLayout(c)
	case 1:
		l, err := layoutOf("layout", c.Args().First())
		return foundLayout{layout: l, from: "the argument", named: true}, err
	}
	return foundLayout{}, usageError("expected one layout, got %d arguments. Write its fields without blanks", c.NArg())
}

// letters stand for the fields in a picture.
var letters = map[worker.Field]string{
	worker.FieldTime: "t", worker.FieldRollback: "r", worker.FieldSegment: "g", worker.FieldDatacenter: "d", worker.FieldWorker: "w", worker.FieldSequence: "s",
}

// picture returns an ID's 64 bits, with the text that bits returns for each field. Blanks
// separate the fields. The sign bit and the other bits above the time field are unused.
func picture(l worker.Layout, bits func(worker.Part) string) string {
	parts := l.Parts()
	groups := []string{"0"}
	if spare := 63 - int(parts[0].Shift+parts[0].Bits); spare > 0 {
		groups[0] += strings.Repeat("0", spare)
	}
	for _, p := range parts {
		groups = append(groups, bits(p))
	}
	return strings.Join(groups, " ")
}

func showLayout(w io.Writer, l worker.Layout, r layoutReport, now time.Time) error {
	fmt.Fprintf(w, "%s\n\n%s\n\n", layoutName(l), picture(l, func(p worker.Part) string {
		return strings.Repeat(letters[p.Field], int(p.Bits))
	}))
	t := textTable{right: map[int]bool{2: true, 3: true}}
	t.add("", "FIELD", "BITS", "FROM-TO", "HOLDS")
	for i, p := range l.Parts() {
		f := r.Fields[i]
		holds := fmt.Sprintf("0 to %s", grouped(f.Values-1))
		if p.Field == worker.FieldTime {
			holds = fmt.Sprintf("ticks of %s since %s", l.Unit, r.Begins)
		}
		t.add(letters[p.Field], f.Name, fmt.Sprint(f.Bits), fmt.Sprintf("%d-%d", f.High, f.Low), holds)
	}
	if err := t.print(w, false); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return printFields(w, layoutRows(l, r, now))
}

func layoutRows(l worker.Layout, r layoutReport, now time.Time) [][2]string {
	rows := [][2]string{
		{"a worker makes", fmt.Sprintf("%s IDs a tick, %s a second", grouped(r.IDsPerTick), perSecond(r.IDsPerSecond))},
		{"workers", grouped(int64(r.Workers))},
		{"all workers make", perSecond(r.IDsPerSecond*float64(r.Workers)) + " IDs a second"},
		{"IDs end", day(r.EndsMs)},
	}
	if l.Workers() > r.Workers {
		rows[1][1] += fmt.Sprintf(" of %s (a cluster uses no more)", grouped(int64(l.Workers())))
	}
	if l.DatacenterBits > 0 {
		rows[1][1] += fmt.Sprintf(", in each of %d datacenters", l.Datacenters())
	}
	if r.Unusable == "" && time.UnixMilli(r.EndsMs).Year() < 9999 {
		rows[3][1] += ", in " + years(time.UnixMilli(r.EndsMs).Sub(now))
	}
	if r.Step > 1 {
		rows = append(rows, [2]string{"in one tick", fmt.Sprintf("IDs of a worker are %s apart", grouped(r.Step))})
	}
	js := "exact as numbers"
	if r.JavaScriptUntilMs < r.EndsMs {
		js = "strings: numbers lose the low bits of IDs from " + day(r.JavaScriptUntilMs) + " on"
	}
	rows = append(rows, [2]string{"in JavaScript", js})
	if r.Unusable != "" {
		rows = append(rows, [2]string{"usable now", "no: " + r.Unusable})
	}
	if r.From != "" {
		rows = append(rows, [2]string{"layout from", r.From})
	}
	return rows
}
