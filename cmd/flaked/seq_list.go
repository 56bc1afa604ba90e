package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/seqstore"
)

func seqList(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "print the named sequences",
		UsageText: "flaked seq list --zk HOST:PORT [flags]",
		Description: `Prints the sequences of a cluster, and the deleted ones. NEXT is the first value that no
node has taken: nodes may still issue lower ones. USED is the part of all values that
nodes have taken. CEILING is the most values a second, and "strict" for a sequence of that
mode. AGE is the time since a node last took values or renewed the record, or since the
deletion.
` + seqStatesText + `

In the JSON, values and positions are strings, as JavaScript rounds large numbers. Times
are Unix milliseconds. next is null if no value is left, or if it depends on the key of a
salted or scattered sequence. salt and scatter are bits, missing for other sequences.
skips is the number of values that will be skipped because ZooKeeper lost data.
deleted_ms and purgeable_ms are null for sequences that are not deleted. max_names and
names are the most sequences that a template creates, and those that it has created, 0
for a sequence. The fields from id on are the record in ZooKeeper: position p has the
value start + p * increment. docs/sequences.md says what value it has with a salt or scatter.

Examples:
  flaked seq list --zk zk1:2181
  flaked seq list --prefix order: -o wide
  flaked seq list -o json | jq -r '.sequences[] | select(.used > 0.8).name'`,
		Flags: append([]cli.Flag{prefixFlag(), wideOutputFlag()}, zkFlags(localZK)...),
		Action: func(c *cli.Context) error {
			return open.reports(c, func(st seqstore.State, found []seqReport) error {
				doc := struct {
					// Epoch grows each time ZooKeeper loses data. Changes counts what operators changed.
					Epoch     int64       `json:"epoch"`
					Changes   int64       `json:"changes"`
					Sequences []seqReport `json:"sequences"`
				}{st.Epoch, st.Changes, found}
				return show(c, doc, func(w io.Writer) error {
					if len(found) == 0 {
						_, err := fmt.Fprintln(w, "no sequences found")
						return err
					}
					return printSequences(w, found, time.Now(), asWide(c), colours(w))
				})
			})
		},
	}
}

// reports calls f with the reports of the sequences that --prefix selects.
func (open storeOpener) reports(c *cli.Context, f func(seqstore.State, []seqReport) error) error {
	prefix, err := prefixGiven(c)
	if err != nil {
		return err
	}
	return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error {
		found, st, err := o.List(ctx, prefix)
		if err != nil {
			return err
		}
		out := []seqReport{}
		for _, n := range found {
			out = append(out, describeSequence(n.Name, n.Record, st, o.Now()))
		}
		return f(st, out)
	})
}

func printSequences(w io.Writer, found []seqReport, now time.Time, wide, colour bool) error {
	t := textTable{right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 7: true, 9: true, 10: true}}
	header := []string{"NAME", "NEXT", "INC", "MAX", "USED", "CEILING", "LAST WRITER", "AGE", "STATE"}
	if wide {
		header = append(header, "START", "BLOCK", "SUPPLY", "HOLD", "NOTE")
	}
	t.add(header...)
	for _, d := range found {
		texts := []string{
			d.Name, d.nextText(), strconv.FormatInt(d.Increment, 10), maxText(d.Max), d.usedText(),
			d.ceilingText(), printable(d.By), d.age(now), d.State,
		}
		if wide {
			texts = append(texts, strconv.FormatInt(d.Start, 10), d.unused(strconv.FormatInt(d.Block, 10)), d.unused(millis(d.SupplyMs).String()), d.unused(millis(d.HoldMs).String()), printable(d.Note))
		}
		row := t.add(texts...)
		row[4].colour, row[8].colour = d.colours()
	}
	return t.print(w, colour)
}

func (d seqReport) ceilingText() string {
	if d.strict() {
		return d.Mode
	}
	return clusterview.Thousands(strconv.FormatInt(d.Ceiling, 10))
}

// age returns the time since the sequence was used or deleted.
func (d seqReport) age(now time.Time) string {
	at := d.AtMs
	if d.DeletedMs != nil {
		at = *d.DeletedMs
	}
	return clusterview.Brief(max(0, now.UnixMilli()-at))
}

// colours returns the colours of the used part and of the state.
func (d seqReport) colours() (used, state string) {
	if d.Used >= clusterview.NearlyUsed {
		used = yellow
	}
	switch d.State {
	case clusterview.SeqExhausted, clusterview.SeqFrozen:
		state = red
	case clusterview.SeqAfterLoss:
		state = yellow
	case clusterview.SeqDeleted:
		used, state = "", faint
	}
	return used, state
}

func seqShow(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print all that is known about a sequence",
		UsageText: "flaked seq show --zk HOST:PORT NAME [flags]",
		ArgsUsage: "NAME",
		Description: `Prints a sequence, or what is kept of a deleted one: its settings, and its record in
ZooKeeper. Position p has the value start + p * increment. -o json prints one object of
` + "`flaked seq list -o json`" + `.

Examples:
  flaked seq show --zk zk1:2181 order
  flaked seq show order -o json`,
		Flags: append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
		Action: func(c *cli.Context) error {
			name, err := sequenceArgument(c)
			if err != nil {
				return err
			}
			return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error {
				r, st, err := o.Show(ctx, name)
				if err != nil {
					return ofSequence(name, err)
				}
				d := describeSequence(name, r, st, o.Now())
				return showFields(c, d, seqRows(d, time.Now()))
			})
		},
	}
}

func seqExport(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "print the sequences as lines of JSON",
		UsageText: "flaked seq export --zk HOST:PORT [flags]",
		Description: `Prints one line for each sequence, and for each deleted one: an object of
` + "`flaked seq list -o json`" + `, to keep or to create the sequences in another cluster. Such an
import needs name, start, increment, max, block, supply_ms, hold_ms, ceiling,
hard_ceiling, note, and next: the first value for the new cluster, null for none.

next is that of this moment. Nodes go on to take values, so a later import issues values
twice unless all nodes of this cluster have stopped before the export. A line whose
state is after-loss or frozen has no safe next: values above it may have been issued.
The key of a salted or scattered sequence is not printed, so its values cannot go on in
another cluster.

Examples:
  flaked seq export --zk zk1:2181 > sequences.jsonl
  flaked seq export --prefix order: | jq -r '[.name, .next] | @tsv'`,
		Flags: append([]cli.Flag{prefixFlag()}, zkFlags(localZK)...),
		Action: func(c *cli.Context) error {
			return open.reports(c, func(_ seqstore.State, found []seqReport) error {
				lines := json.NewEncoder(c.App.Writer)
				lines.SetEscapeHTML(false)
				for _, d := range found {
					if err := lines.Encode(d); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
