package main

import (
	"bufio"
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

func decodeCommand() *cli.Command {
	return &cli.Command{
		Name:      "decode",
		Usage:     "decode IDs into time, datacenter, worker and sequence",
		ArgsUsage: "[ID...]",
		Description: `Prints the fields of each ID, and the layout that it used. Without arguments it reads
IDs from standard input, one per line. Sequence 17 is printed as 3/17 in segment 3,
and as 17 r1 after one rollback. ` + "`flaked layout explain`" + ` shows the bits.

` + layoutHelp + `

Exits with 4, after printing, if the layout was assumed, or if a time is in the future
or before 2020: most likely another layout made that ID. With --layout on the command
line, a time before 2020 only gives a warning (exit code 0): it may be an old ID.

With -o json each ID is one object on one line. layout_from says where the layout was
found. warning is present if the time is doubtful:
  {"id":"...","time":"...","timestamp_ms":...,"datacenter":0,"worker":7,"sequence":0,
   "layout":"time=41@1ms,...","layout_from":"--layout"}

Examples:
  flaked decode --layout leaf 2071452936696786986
  flaked get 3 | flaked decode -o json
  flaked decode --addr ids.example.com 2071452936696786986
  flaked decode --zk zk1:2181 --cluster orders 2071452936696786986`,
		Flags:  append([]cli.Flag{outputFlag()}, layoutSourceFlags()...),
		Action: decode,
	}
}

// decodedID is the JSON of one ID. The ID is a string: as a number it would lose its low bits
// in JavaScript, and in jq.
type decodedID struct {
	ID          string `json:"id"`
	Time        string `json:"time"` // RFC 3339 with milliseconds, UTC
	TimestampMs int64  `json:"timestamp_ms"`
	Datacenter  int64  `json:"datacenter"`
	Worker      int64  `json:"worker"`
	Sequence    int64  `json:"sequence"`
	// Segment and Rollback are nil if the layout has no such field.
	Segment  *int64 `json:"segment,omitempty"`
	Rollback *int64 `json:"rollback,omitempty"`
	// Layout is the layout that the ID was decoded by. LayoutFrom says where it was
	// found: see foundLayout.
	Layout     string `json:"layout"`
	LayoutFrom string `json:"layout_from"`
	// Warning says why the time is doubtful. It is "" if the time is not.
	Warning doubt `json:"warning,omitempty"`
}

func decodeID(layout worker.Layout, text string) (decodedID, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return decodedID{}, fmt.Errorf("%.40q is not an ID: IDs are decimal numbers from 0 to 9223372036854775807", text)
	}
	f, err := layout.Decode(worker.ID(n))
	if err != nil {
		return decodedID{}, err
	}
	t := layout.Time(f)
	id := decodedID{
		ID: strconv.FormatInt(n, 10), Time: t.Format(timeFormat), TimestampMs: t.UnixMilli(),
		Datacenter: f.Datacenter, Worker: f.Worker, Sequence: f.Sequence,
	}
	if layout.SegmentBits > 0 {
		id.Segment = &f.Segment
	}
	if layout.RollbackBits > 0 {
		id.Rollback = &f.Rollback
	}
	return id, nil
}

func decode(c *cli.Context) error {
	layout, err := findLayout(c)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.App.Writer)
	show := showTable(out, layout)
	if asJSON(c) {
		enc := json.NewEncoder(out)
		show = func(id decodedID) error { return enc.Encode(id) }
	}
	return decodeAll(c, layout, show, out.Flush)
}

// decodeAll calls show with each ID that eachID finds. It calls flush before it prints an error,
// so that errors appear in order, and at the end.
func decodeAll(c *cli.Context, layout foundLayout, show func(decodedID) error, flush func() error) error {
	total, bad := 0, 0
	var odd oddTimes
	now := time.Now()
	err := eachID(c, func(text string) error {
		total++
		id, err := layout.decode(text, now)
		if err == nil {
			odd.add(id)
			return show(id)
		}
		bad++
		if err := flush(); err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.App.ErrWriter, "flaked: "+plain(err.Error()))
		return err
	})
	if err := errors.Join(err, flush()); err != nil {
		return err
	}
	return decoded(c, layout, odd, total, bad)
}

// decoded returns the error that a command ends with after it decoded IDs. IDs that could not
// be decoded count more than doubtful times or an assumed layout. All warnings are printed.
func decoded(c *cli.Context, layout foundLayout, odd oddTimes, total, bad int) error {
	var warnings []string
	degraded := false
	if err := layout.doubt(); total > 0 && err != nil {
		warnings, degraded = append(warnings, err.Error()), true
	}
	if text := odd.text(total); text != "" {
		warnings = append(warnings, text)
		degraded = degraded || odd.future > 0 || !layout.named
	}
	switch text := joinSentences(warnings); {
	case bad > 0:
		if text != "" {
			fmt.Fprintln(c.App.ErrWriter, "flaked: "+text)
		}
		return exitWith(exitFailure, "%d of %d could not be decoded", bad, total)
	case degraded:
		return exitWith(exitDegraded, "%s", text)
	case text != "":
		fmt.Fprintln(c.App.ErrWriter, "flaked: "+text)
	}
	return nil
}

// showTable returns a function that prints one row at once, so that it works in a pipe. Columns
// are therefore as wide as their longest possible value. A doubt follows its row.
func showTable(out io.Writer, layout foundLayout) func(decodedID) error {
	const row = "%-19s  %-24s  %13v  %10v  %6v  %8v%s\n"
	begun := false
	return func(id decodedID) error {
		if !begun {
			begun = true
			if _, err := fmt.Fprintf(out, "layout %s\n"+row, layout, "ID", "TIME", "TIMESTAMP MS", "DATACENTER", "WORKER", "SEQUENCE", ""); err != nil {
				return err
			}
		}
		sequence := strconv.FormatInt(id.Sequence, 10)
		if id.Segment != nil {
			sequence = fmt.Sprintf("%d/%d", *id.Segment, id.Sequence)
		}
		if id.Rollback != nil {
			sequence += fmt.Sprintf(" r%d", *id.Rollback)
		}
		warning := ""
		if id.Warning != "" {
			warning = "  " + string(id.Warning)
		}
		_, err := fmt.Fprintf(out, row, id.ID, id.Time, id.TimestampMs, id.Datacenter, id.Worker, sequence, warning)
		return err
	}
}

// eachID calls f with each argument. Without arguments it calls f with each line of standard
// input that is not blank.
func eachID(c *cli.Context, f func(string) error) error {
	for _, arg := range c.Args().Slice() {
		if err := f(strings.TrimSpace(arg)); err != nil {
			return err
		}
	}
	if c.Args().Present() {
		return nil
	}
	if isTerminal(c.App.Reader) {
		fmt.Fprintln(c.App.ErrWriter, "reading IDs from the terminal, one per line. Ctrl-D ends the input.")
	}
	lines := bufio.NewScanner(c.App.Reader)
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			if err := f(text); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}
