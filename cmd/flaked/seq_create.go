package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/sequence"
)

// Default ceilings, in values a second. A loss of ZooKeeper's data can cost a sequence its ceiling
// for as long as the lost record is old, and one of 32 bits has few values.
const (
	defaultCeiling = 1_000_000
	int32Ceiling   = 1000
)

// defaultMaxNames is the number of sequences that a template creates at most: one a day for 27 years.
const defaultMaxNames = 10_000

func seqCreate(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "create",
		Usage:     "create a named sequence",
		ArgsUsage: "NAME|PREFIX*",
		Description: `Creates a sequence. Its values are start, start + increment, and so on up to max. Every
node of the cluster can issue them, and issues none twice. At the max, requests fail:
the values never begin again. A name is a letter, a digit, _ or {, followed by
letters, digits and _ . : - { } /, up to 128 bytes, and not digits alone.

Start, increment, mode, key and the hard ceiling can never be changed. The hard ceiling
bounds how many values are skipped after ZooKeeper has lost data.
A name that was deleted begins above the values of all its earlier lives. After ZooKeeper
has lost data, a name of which no record knows all values needs --start.

A sequence of --mode strict gives higher values to later requests, over all nodes. --salt
and --scatter hide neighbours with a key. docs/sequences.md says what each costs.

A name such as order:* is a template. Nodes create each sequence that it matches at its
first use, with the settings of the template. The prefix ends with one of _ . : - /. After
ZooKeeper has lost data, it creates nothing until you say with ` + "`flaked seq set --next`" + `
where new sequences begin.

Examples:
  flaked seq create --zk zk1:2181 ticket --start 1000 --increment 10 --max int32
  flaked seq create invoice --mode strict
  flaked seq create order:eu --ceiling 50000 --hold 1h
  flaked seq create 'order:*' --max-names 4000
  flaked seq create ticket --scatter 34 --start 1000000000 --max 9999999999`,
		Flags: slices.Concat(createFlags(), settingFlags(true), zkFlags(localZK)),
		Action: func(c *cli.Context) error {
			d, err := definition(c)
			if err != nil {
				return err
			}
			return open.ofOne(c, func(ctx context.Context, o seq.Operator, name string) error {
				return createSequence(ctx, c, o, d)
			})
		},
	}
}

// createFlags returns the flags of what can never be changed, of the max and of templates.
func createFlags() []cli.Flag {
	return in(callFlags,
		&cli.StringFlag{Name: "mode", Value: seq.Segment.String(), Usage: "segment: nodes issue from values that " +
			"they took in advance. strict: in the order of the requests over all nodes"},
		&cli.Int64Flag{Name: "start", Usage: "the first `VALUE`, 0 or more", Value: 1},
		&cli.Int64Flag{Name: "increment", Usage: "the distance of one value to the next", Value: 1},
		&cli.IntFlag{Name: "salt", Usage: "append this many `BITS` to each value, 1 to 16, that only the sequence's " +
			"key shows"},
		&cli.IntFlag{Name: "scatter",
			Usage: "give out all numbers of this many `BITS`, 16 to 63, in an order that only the sequence's key " +
				"shows"},
		maxFlag("js", ". js is 2^53-1, which JavaScript holds exactly"),
		&cli.Int64Flag{Name: "hard-ceiling", Usage: "the highest ceiling that the sequence can ever have",
			DefaultText: "the ceiling"},
		maxNamesFlag("10000"))
}

func createSequence(ctx context.Context, c *cli.Context, o seq.Operator, d seq.Definition) error {
	if !c.IsSet("hold") && d.Mode.Holds() {
		cl, err := coordinator.ReadCluster(ctx, o.Store)
		if err != nil {
			return err
		}
		d.HoldMs = cl.LeaseMs
	}
	old, _, _ := o.Show(ctx, d.Name) // only for the text
	r, err := o.Create(ctx, d)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.App.Writer, created(d.Name, r, old.Kind() == seq.Tombstone))
	return err
}

// unusedByStrict returns an error if a flag is given that a strict sequence does not use.
func unusedByStrict(c *cli.Context) error {
	for _, name := range []string{"block", "supply", "hold", "ceiling", "hard-ceiling"} {
		if c.IsSet(name) {
			return usageError("--%s is not for strict sequences: nodes keep none of their values. Leave it out", name)
		}
	}
	return nil
}

// definition returns the sequence that the command line describes. Without --hold, its hold is 1 ms, or
// that of a strict sequence.
func definition(c *cli.Context) (d seq.Definition, err error) {
	if d.Name, err = sequenceArgument(c); err != nil {
		return d, err
	}
	var known bool
	if d.Mode, known = seq.ParseMode(c.String("mode")); !known {
		return d, usageError("--mode must be segment or strict, not %q", c.String("mode"))
	}
	if !d.Mode.Holds() {
		if err := unusedByStrict(c); err != nil {
			return d, err
		}
	}
	d.StartGiven = c.IsSet("start")
	d.Map = sequence.Map{
		Start: c.Int64("start"), Increment: c.Int64("increment"), Max: sequence.MaxJavaScript,
		Salt: c.Int("salt"), Scatter: c.Int("scatter"),
	}
	switch {
	case c.IsSet("max-names") && !sequence.IsTemplate(d.Name):
		return d, usageError("--max-names is for templates, whose names end with *, as in order:*")
	case c.IsSet("max-names"):
		d.MaxNames = c.Int64("max-names")
	case sequence.IsTemplate(d.Name):
		d.MaxNames = defaultMaxNames
	}
	if c.IsSet("max") {
		if d.Max, err = parseMax(c.String("max")); err != nil {
			return d, err
		}
	}
	d.Settings = seq.Settings{
		Block: c.Int64("block"), SupplyMs: c.Duration("supply").Milliseconds(), HoldMs: 1, Ceiling: defaultCeiling,
	}
	if d.Max <= math.MaxInt32 {
		d.Ceiling = int32Ceiling
	}
	hard := c.Int64("hard-ceiling")
	if c.IsSet("hard-ceiling") {
		if hard < 1 {
			return d, usageError("--hard-ceiling must be 1 or more values a second, not %d", hard)
		}
		d.Ceiling = min(d.Ceiling, hard)
	}
	changeSettings(c, &d.Settings)
	if d.HardCeiling = d.Ceiling; c.IsSet("hard-ceiling") {
		d.HardCeiling = hard
	}
	if !d.Mode.Holds() {
		d.HoldMs = seq.AnswerFor.Milliseconds()
	}
	if err := d.Check(); err != nil {
		return d, usageError("--%w", err)
	}
	return d, nil
}

// created returns a line that says what was created, and one that says how to ask for a value. again
// means that the name was deleted before.
func created(name string, r seq.Record, again bool) string {
	what, ask, template := "sequence "+name, name, r.Kind() == seq.Template
	if template {
		what = "template " + name + ". Nodes create each sequence that it matches at its first use"
		ask = strings.TrimSuffix(name, "*") + "1"
	}
	switch {
	case r.Keyed() && template:
		what += ", with a key of its own"
	case r.Keyed():
		what += ". Its map is " + r.MapName() + ", and its key is in ZooKeeper"
	case template:
		what += fmt.Sprintf(", with %d as the first value", r.Value(r.Next))
	case again:
		what += fmt.Sprintf(". The name was deleted before, so it goes on above its old values: its first value is %d",
			r.Value(r.Next))
	default:
		what += fmt.Sprintf(". Its first value is %d", r.Value(r.Next))
	}
	return fmt.Sprintf("created %s.\nAsk a node for a value with `flaked seq next %s`, or NEXT %[2]s\n", what, ask)
}
