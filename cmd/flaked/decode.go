package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/worker"
)

func decodeCommand() *cli.Command {
	return &cli.Command{
		Name:      "decode",
		Usage:     "take IDs apart: when, where and in which place they were made",
		UsageText: "flaked decode [flags] [ID...]",
		ArgsUsage: "[ID...]",
		Description: `Prints the fields of each ID. Without arguments it reads them from standard input,
one a line. The layout is the one that --layout gives; else the cluster's, where
--zk (or FLAKED_ZK) says which; else the default one, leaf. A segment is shown before
the sequence, 3/17, a count of rollbacks after it, 17 r1. ` + "`flaked layout explain`" + ` shows the bits.

With -o json an ID is one object; several are one object a line:
  {"id":"...","time":"...","timestamp_ms":...,"datacenter":0,"worker":7,"sequence":0}

Examples:
  flaked decode 2071452936696786986
  flaked get 3 | flaked decode -o json
  flaked decode --layout twitter 2071452936696786986
  flaked decode --layout sonyflake 45035996273704960`,
		Flags: append([]cli.Flag{outputFlag(),
			layoutFlag("the cluster's, or leaf"),
		}, zkFlags("")...),
		Action: decode,
	}
}

// decodedID is what -o json prints of an ID. The ID is a string: as a number it
// would lose its low bits in JavaScript, and in jq.
type decodedID struct {
	ID          string `json:"id"`
	Time        string `json:"time"` // RFC 3339 with milliseconds, UTC
	TimestampMs int64  `json:"timestamp_ms"`
	Datacenter  int64  `json:"datacenter"`
	Worker      int64  `json:"worker"`
	Sequence    int64  `json:"sequence"`
	// Segment and Rollback are left out where the layout has none.
	Segment  *int64 `json:"segment,omitempty"`
	Rollback *int64 `json:"rollback,omitempty"`
}

const timeFormat = "2006-01-02T15:04:05.000Z"

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
	format, err := outputFormat(c)
	if err != nil {
		return err
	}
	layout, err := decodeLayout(c)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.App.Writer)
	show := showTable(out)
	if format == formatJSON {
		enc := json.NewEncoder(out)
		show = func(id decodedID) error { return enc.Encode(id) }
	}
	total, bad := 0, 0
	err = eachID(c, func(text string) error {
		total++
		id, err := decodeID(layout, text)
		if err == nil {
			return show(id)
		}
		bad++
		if err := out.Flush(); err != nil { // so that errors stand where they belong
			return err
		}
		_, err = fmt.Fprintln(c.App.ErrWriter, "flaked: "+plain(err.Error()))
		return err
	})
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if bad > 0 {
		return exitWith(exitFailure, "%d of %d could not be decoded", bad, total)
	}
	return nil
}

// showTable prints rows as they come, so that it can stand in a pipe: widths
// are those of the longest there can be.
func showTable(out io.Writer) func(decodedID) error {
	const row = "%-19s  %-24s  %13v  %10v  %6v  %8v\n"
	begun := false
	return func(id decodedID) error {
		if !begun {
			begun = true
			if _, err := fmt.Fprintf(out, row, "ID", "TIME", "TIMESTAMP MS", "DATACENTER", "WORKER", "SEQUENCE"); err != nil {
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

// eachID calls f with each argument, or without any with each line that is not
// blank of standard input.
func eachID(c *cli.Context, f func(string) error) error {
	for _, arg := range c.Args().Slice() {
		if err := f(strings.TrimSpace(arg)); err != nil {
			return err
		}
	}
	if c.Args().Present() {
		return nil
	}
	if in, ok := c.App.Reader.(*os.File); ok && isTerminal(in) {
		fmt.Fprintln(c.App.ErrWriter, "reading IDs from the terminal, one a line; Ctrl-D ends")
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

// envLayoutTimeout is how long a cluster's layout is waited for that was not
// asked for on this command line.
const envLayoutTimeout = 2 * time.Second

// decodeLayout is the layout to decode by. A wrong one decodes to nonsense
// without an error, so the cluster's is read where a cluster is named. Where
// only the environment names one, and it does not answer, the default layout
// is better than nothing, and it says so.
func decodeLayout(c *cli.Context) (worker.Layout, error) {
	if c.IsSet("layout") {
		layout, err := worker.ParseLayout(c.String("layout"))
		if err != nil {
			return layout, usageError("--layout: %w", err)
		}
		return layout, nil
	}
	// The environment is set for other commands too.
	named := c.IsSet("cluster")
	asked := c.String("zk") != os.Getenv("FLAKED_ZK") || named && c.String("cluster") != os.Getenv("FLAKED_CLUSTER")
	if c.String("zk") == "" {
		if asked {
			return worker.Layout{}, usageError("--cluster needs --zk: where is ZooKeeper? (or give --layout)")
		}
		return worker.Leaf(), nil
	}
	cl, err := clusterToDecode(c, asked)
	switch {
	case err == nil:
		return worker.ParseLayout(cl.Layout)
	case asked || c.Err() != nil:
		return worker.Layout{}, err
	case errors.Is(err, coordinator.ErrNoCluster) && !named:
		return worker.Leaf(), nil // no cluster is meant, only a ZooKeeper
	case errors.Is(err, coordinator.ErrNoCluster), errors.Is(err, coordinator.ErrUnreachable):
		fmt.Fprintln(c.App.ErrWriter, "flaked: decoding by the default layout, leaf, as the cluster's could not be read: "+plain(err.Error()))
		return worker.Leaf(), nil
	}
	return worker.Layout{}, err
}

func clusterToDecode(c *cli.Context, asked bool) (cl coordinator.Cluster, err error) {
	err = withStore(c, func(ctx context.Context, store coordinator.Store) error {
		if !asked {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, envLayoutTimeout)
			defer cancel()
		}
		cl, err = coordinator.ReadCluster(ctx, store)
		return err
	})
	return cl, err
}
