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

	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/internal/ops/poll"
	"github.com/flaked/flaked/internal/ops/words"
	"github.com/flaked/flaked/worker"
)

func decodeCommand() *cli.Command {
	return &cli.Command{
		Name:      "decode",
		Usage:     "decode IDs into time, datacenter, worker and sequence",
		ArgsUsage: "[ID...]",
		Description: `Prints the fields of each ID, and the layout that it used. Without arguments it reads
IDs from standard input, one per line. Sequence 17 is printed as 3/17 in segment 3,
and as 17 r1 after one rollback.

The layout is --layout, or else that of the node at --addr. Every layout decodes every
number, so a wrong one shows only by odd times. With -o json each ID is one object on one
line.

Examples:
  flaked decode --layout leaf 2071452936696786986
  flaked get 3 | flaked decode -o json
  flaked decode --addr ids.example.com 2071452936696786986`,
		Flags:  append([]cli.Flag{outputFlag(), layoutFlag("that of the node")}, nodeFlags(2*time.Second)...),
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
}

// foundLayout is the layout to decode by and where it was found. A wrong layout
// decodes to nonsense without an error, so every output names both.
type foundLayout struct {
	worker.Layout
	// from is --layout or "node ADDRESS, cluster NAME".
	from string
}

func (f foundLayout) decode(text string) (decodedID, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return decodedID{}, fmt.Errorf("%.40q is not an ID: IDs are decimal numbers from 0 to 9223372036854775807",
			text)
	}
	fields, err := f.Decode(worker.ID(n))
	if err != nil {
		return decodedID{}, err
	}
	t := f.Time(fields)
	id := decodedID{
		ID: strconv.FormatInt(n, 10), Time: t.Format(words.TimeFormat), TimestampMs: t.UnixMilli(),
		Datacenter: fields.Datacenter, Worker: fields.Worker, Sequence: fields.Sequence,
		Layout: f.String(), LayoutFrom: f.from,
	}
	if f.SegmentBits > 0 {
		id.Segment = &fields.Segment
	}
	if f.RollbackBits > 0 {
		id.Rollback = &fields.Rollback
	}
	return id, nil
}

// findLayout returns the layout of --layout, or else that of the cluster of the node at --addr.
func findLayout(c *cli.Context) (found foundLayout, err error) {
	// --addr of the command line overrides a layout that the environment or the file gives.
	if c.IsSet("layout") && (onCommandLine(c, "layout") || !onCommandLine(c, "addr")) {
		if found.Layout, err = worker.ParseLayout(c.String("layout")); err != nil {
			return found, usageError("--layout: %w", err)
		}
		found.from = "--layout"
		return found, nil
	}
	node, err := readNode(c)
	if err != nil {
		return found, err
	}
	lines, err := node.Ask(c.Context, "STATUS", 1)
	_, silent := errors.AsType[*poll.SilentError](err)
	switch {
	case silent:
		return found, fmt.Errorf("%w. Without a node, give the cluster's layout, such as --layout leaf, the default", err)
	case err != nil:
		return found, fmt.Errorf("%w%s", err, accessAdvice(err))
	}
	doc, ok := poll.ParseStatus(lines[0])
	if !ok {
		return found, failure("%s answered %.60q to STATUS. Check that it is a flaked node", node.Addr, lines[0])
	}
	layout := doc.Cluster.Layout
	if layout == "" {
		return found, failure("the node at %s does not know its cluster's layout yet: it has not "+
			"reached ZooKeeper. Try again later", node.Addr)
	}
	found.from = fmt.Sprintf("node %s, cluster %s", node.Addr, printable(doc.Cluster.Name))
	if found.Layout, err = worker.ParseLayout(layout); err != nil {
		return found, failure("%s answered %.60q for its layout. Check that it is a flaked node of this "+
			"release", node.Addr, layout)
	}
	return found, nil
}

func decode(c *cli.Context) error {
	layout, err := findLayout(c)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.App.Writer)
	write := tableWriter(out, layout)
	if asJSON(c) {
		enc := json.NewEncoder(out)
		write = func(id decodedID) error { return enc.Encode(id) }
	}
	total, bad := 0, 0
	err = eachID(c, func(text string) error {
		total++
		id, err := layout.decode(text)
		if err == nil {
			return write(id)
		}
		bad++
		if err := out.Flush(); err != nil { // so that errors appear in order
			return err
		}
		_, err = fmt.Fprintln(c.App.ErrWriter, "flaked: "+words.PlainError(err.Error()))
		return err
	})
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if bad > 0 {
		return failure("%d of %d could not be decoded", bad, total)
	}
	return nil
}

// tableWriter returns a function that prints one row at once, so that it works in a pipe. Columns
// are therefore as wide as their longest possible value.
func tableWriter(out io.Writer, layout foundLayout) func(decodedID) error {
	const row = "%-19s  %-24s  %13v  %10v  %6v  %8v\n"
	begun := false
	return func(id decodedID) error {
		if !begun {
			begun = true
			if _, err := fmt.Fprintf(out, "layout %s, from %s\n"+row, layoutName(layout.Layout), layout.from, "ID",
				"TIME", "TIMESTAMP MS", "DATACENTER", "WORKER", "SEQUENCE"); err != nil {
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
		_, err := fmt.Fprintf(out, row, id.ID, id.Time, id.TimestampMs, id.Datacenter, id.Worker, sequence)
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
	lines := bufio.NewScanner(c.App.Reader)
	for lines.Scan() {
		line, err := access.Text(lines.Bytes()) // the first one may have a byte order mark
		if err != nil {
			return usageError("standard input: %w", err)
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			if err := f(text); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}
