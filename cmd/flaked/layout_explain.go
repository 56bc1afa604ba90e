package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/worker"
)

func layoutExplainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "decode IDs bit by bit",
		ArgsUsage: "[ID...]",
		Description: `Shows the bits of each ID, the meaning of its fields, the lowest and the highest ID of
its tick (for queries by time), and its other formats. Without arguments it reads IDs
from standard input, one per line. ` + "`flaked decode`" + ` prints one line per ID.

` + layoutHelp + `
A doubtful time or layout gives a warning and exit code 4, as with flaked decode.

With -o json each ID is one object on one line.

Examples:
  flaked layout explain 2123840256405929993
  flaked get | flaked layout explain
  flaked layout explain --layout sonyflake 45035996273704960`,
		Flags:  append([]cli.Flag{outputFlag()}, layoutSourceFlags()...),
		Action: layoutExplain,
	}
}

// explainedID is the JSON of `layout explain`. IDs are strings.
type explainedID struct {
	decodedID
	Bits []bitsReport `json:"bits"` // from the top
	// First and Last are the lowest and the highest ID of the ID's tick.
	First string `json:"first"`
	Last  string `json:"last"`
}

type bitsReport struct {
	Name  string `json:"name"`
	Bits  string `json:"bits"`
	Value int64  `json:"value"`
}

func explainID(l worker.Layout, id decodedID) explainedID {
	n, _ := strconv.ParseInt(id.ID, 10, 64)
	e := explainedID{decodedID: id}
	for _, p := range l.Parts() {
		value := n >> p.Shift & (1<<p.Bits - 1)
		e.Bits = append(e.Bits, bitsReport{p.Field.String(), fmt.Sprintf("%0*b", p.Bits, value), value})
	}
	below := int64(1)<<l.Parts()[0].Shift - 1
	e.First, e.Last = strconv.FormatInt(n&^below, 10), strconv.FormatInt(n|below, 10)
	return e
}

func layoutExplain(c *cli.Context) error {
	found, err := findLayout(c)
	if err != nil {
		return err
	}
	show := showExplained(c.App.Writer, found)
	if asJSON(c) {
		show = func(id explainedID) error { return json.NewEncoder(c.App.Writer).Encode(id) }
	}
	return decodeAll(c, found, func(id decodedID) error { return show(explainID(found.layout, id)) }, func() error { return nil })
}

// showExplained returns a function that prints IDs with a blank line between them.
func showExplained(w io.Writer, found foundLayout) func(explainedID) error {
	l, between := found.layout, ""
	return func(id explainedID) error {
		i := 0
		bits := picture(l, func(worker.Part) string { i++; return id.Bits[i-1].Bits })
		names := picture(l, func(p worker.Part) string { return strings.Repeat(letters[p.Field], int(p.Bits)) })
		fmt.Fprintf(w, "%sID %s, layout %s\n\n%s\n%s\n\n", between, id.ID, found, bits, names)
		between = "\n"
		n, err := worker.ParseID(id.ID)
		var t textTable
		for _, b := range id.Bits {
			value := strconv.FormatInt(b.Value, 10)
			if b.Name == worker.FieldTime.String() {
				value += fmt.Sprintf(" ticks of %s after %s", l.Unit, l.Time(worker.Fields{}).Format(timeFormat))
			}
			t.add(b.Name, value)
		}
		made := id.Time
		if l.Unit > time.Millisecond {
			made += ", or within " + l.Unit.String() + " after"
		}
		if id.Warning != "" {
			made += ", " + string(id.Warning)
		}
		t.add("made at", made)
		t.add("its tick", id.First+" to "+id.Last)
		for _, e := range worker.Encodings() {
			if e != worker.Decimal {
				t.add("as "+e.String(), e.Encode(n))
			}
		}
		return errors.Join(err, t.print(w, false))
	}
}
