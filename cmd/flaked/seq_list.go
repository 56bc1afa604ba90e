package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

func seqListCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "print the named sequences",
		Description: `Prints the sequences of a cluster, and the deleted ones. NEXT is the first value that no
node has taken: nodes may still issue lower ones. USED is the part that nodes have taken.
CEILING is the most values a second. AGE is the time since the record was written last, or
since the deletion. A family is one line, with the highest NEXT of its sections.
` + seqStatesText + `

In the JSON, values and positions are strings, as JavaScript rounds large numbers. next is
null if no value is left, or if it depends on a key. skips is the number of values that will
be skipped because ZooKeeper lost data.

Examples:
  flaked seq list --zk zk1:2181
  flaked seq list -o json | jq -r '.sequences[] | select(.used_percent > 80).name'`,
		Flags:  append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
		Action: seqList,
	}
}

func seqList(c *cli.Context) error {
	return withSequences(c, func(o operator.Commands) error {
		found, state, err := o.List(c.Context, "")
		if err != nil {
			return err
		}
		doc := struct {
			// Incarnation grows each time ZooKeeper loses data. Changes counts what operators change or nodes restore.
			Incarnation int64                   `json:"incarnation"`
			Changes     int64                   `json:"changes"`
			Sequences   []health.SequenceReport `json:"sequences"`
		}{state.Incarnation, state.Changes, []health.SequenceReport{}}
		now := o.Now()
		for _, n := range found {
			doc.Sequences = append(doc.Sequences, health.RecordedReport(n, state, now))
		}
		return printDoc(c, doc, func(w io.Writer) error {
			if len(found) == 0 {
				_, err := fmt.Fprintln(w, "no sequences found")
				return err
			}
			return printSequences(w, doc.Sequences, now)
		})
	})
}

// printSequences prints a list of sequences. now is in Unix ms.
func printSequences(w io.Writer, found []health.SequenceReport, now int64) error {
	var t textTable
	t.add("NAME", "NEXT", "INC", "MAX", "USED", "CEILING", "LAST WRITER", "AGE", "STATE")
	for _, d := range found {
		ceiling, at := words.Grouped(d.Ceiling), d.WrittenMs
		if d.State == health.SeqDamaged {
			t.add(d.Name, "-", "-", "-", "-", "-", "-", words.Duration(max(0, now-at)), string(d.State))
			continue
		}
		if !takenAhead(d) {
			ceiling = d.Mode
		}
		if d.DeletedMs != nil {
			at = *d.DeletedMs
		}
		t.add(d.Name, nextText(d), strconv.FormatInt(d.Increment, 10), maxText(d.Max), d.UsedText(),
			ceiling, printable(d.By), words.Duration(max(0, now-at)), string(d.State))
	}
	return t.print(w)
}

func seqShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print all that is known about a sequence",
		ArgsUsage: "NAME",
		Description: `Prints a sequence, or what is kept of a deleted one. Position p has the value start + p *
increment. Of an ordered sequence it prints the owner, since when, and how many owners there
have been. Of a family it prints the sections by their owners, and of a name of a family the
section that issues its values.

-o json prints one object of ` + "`flaked seq list -o json`" + `, and the key of a salted or
scattered sequence, null if ZooKeeper has lost it, or if you may not read it.

The key is a secret: a program that has it can predict all values, and make ones that
pass. With --zk-auth-file, only the user in that file can read it. Without, everybody who
reaches ZooKeeper can. Give it only to programs that must verify values (docs/sequences.md), and put
no such output into logs or tickets: jq 'del(.key)' removes it. It never changes.

Examples:
  flaked seq show --zk zk1:2181 order
  flaked seq show 'msg:*'
  flaked seq show ticket -o json | jq -r .key > ticket.key`,
		Flags:  append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
		Action: onSequence(seqShow),
	}
}

func seqShow(c *cli.Context, o operator.Commands, name string) error {
	r, state, err := o.Find(c.Context, name)
	if errors.Is(err, operator.ErrNotFound) {
		r, state, err = o.FindInFamily(c.Context, name)
	}
	if err != nil {
		return err
	}
	now := o.Now()
	d := health.RecordedReport(r, state, now)
	if !asJSON(c) || !r.Keyed() {
		return printDoc(c, d, func(w io.Writer) error {
			if err := seqRows(d, time.UnixMilli(now), true).print(w); err != nil {
				return err
			}
			return printOwners(d, w, time.UnixMilli(now))
		})
	}
	doc := struct {
		health.SequenceReport
		Key *string `json:"key"`
	}{SequenceReport: d}
	switch k, err := o.MapKey(c.Context, r.Record); {
	case err == nil && r.MaxNames == 0:
		doc.Key = new(k.Hex())
	case err != nil && !errors.Is(err, operator.ErrNoMapKey) && !errors.Is(err, store.ErrDenied):
		return err
	}
	return printJSON(c.App.Writer, doc)
}
