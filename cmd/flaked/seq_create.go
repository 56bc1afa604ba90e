package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/seq/strict"
	"github.com/flaked/flaked/internal/ops/words"
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

func seqCreateCommand() *cli.Command {
	return &cli.Command{
		Name:      "create",
		Usage:     "create a named sequence",
		ArgsUsage: "NAME|PREFIX*",
		Description: `Creates a sequence. Its values are start, start + increment, and so on up to max. Every
node of the cluster can issue them, and issues none twice. At the max, requests fail:
the values never begin again. A name is a letter, a digit, _ or {, followed by
letters, digits and _ . : - { } /, up to 128 bytes, and not digits alone.

Start, increment, mode and key can never be changed. The ceiling bounds how many values
are skipped after ZooKeeper has lost data, so it can never be above the first one.
A name that was deleted begins above the values of all its earlier lives. If a node that
holds a worker is not connected then, the command must be confirmed. After ZooKeeper has
lost data, a name of which no record knows all values needs --start.

A sequence of --mode strict or ordered gives higher values to later requests, over all
nodes. Of an ordered one, one node at a time is the owner: it issues from memory, and the
others pass their requests on to it. --salt and --scatter hide neighbours with a key.
docs/sequences.md says what each costs.

With --mode ordered and --sections, a name such as msg:* is a family: each name with its
prefix has rising values, and is created nowhere. Each section has an owner of its own, so
that nodes share the work. The number of sections, as the lease, can never be changed.

Otherwise, a name such as order:* is a template. Nodes create each sequence that it matches
at its first use, with the settings of the template. The prefix ends with one of _ . : - /.
After ZooKeeper has lost data, it creates nothing until you say with
` + "`flaked seq set --next`" + ` where new sequences begin.

Examples:
  flaked seq create --zk zk1:2181 ticket --start 1000 --increment 10 --max int32
  flaked seq create invoice --mode strict
  flaked seq create ticks --mode ordered
  flaked seq create 'msg:*' --mode ordered --sections 64
  flaked seq create order:eu --ceiling 50000 --hold 1h
  flaked seq create 'order:*' --max-names 4000
  flaked seq create ticket --scatter 34 --start 1000000000 --max 9999999999`,
		Flags:  slices.Concat(createFlags(), sequenceFlags(true), []cli.Flag{confirmFlag()}, zkFlags(localZK)),
		Action: onSequence(seqCreate),
	}
}

// createFlags returns the flags of what can never be changed, of the max and of templates.
func createFlags() []cli.Flag {
	return inCategory(categoryCommandLineOnly,
		&cli.StringFlag{Name: "mode", Value: record.Segment.String(), Usage: "segment: nodes issue from values that " +
			"they took in advance. strict: in the order of the requests over all nodes, each written to ZooKeeper. " +
			"ordered: in that order, one node at a time issues from memory"},
		&cli.IntFlag{Name: "sections", Usage: "make an ordered family, in this many sections, 1 to 512",
			DefaultText: "none"},
		&cli.DurationFlag{Name: "lease", Value: record.DefaultLease, Usage: "how long the owner of an ordered sequence " +
			"issues without ZooKeeper, and others wait before they take its place: 1s to 1m"},
		&cli.Int64Flag{Name: "start", Usage: "the first `VALUE`, 0 or more", Value: 1},
		&cli.Int64Flag{Name: "increment", Usage: "the distance of one value to the next", Value: 1},
		&cli.IntFlag{Name: "salt", Usage: "append this many `BITS` to each value, 1 to 16, that only the sequence's " +
			"key shows"},
		&cli.IntFlag{Name: "scatter",
			Usage: "give out all numbers of this many `BITS`, 16 to 63, in an order that only the sequence's key " +
				"shows"},
		maxFlag("js", ". js is 2^53-1, which JavaScript holds exactly"),
		maxNamesFlag("10000"))
}

func seqCreate(c *cli.Context, o operator.Commands, name string) error {
	d, err := readDefinition(c, name, func() (int64, error) {
		cl, err := coordinator.ReadCluster(c.Context, o.Store)
		return cl.LeaseMs, err
	})
	if err != nil {
		return err
	}
	old, _, _ := o.Find(c.Context, name) // only for the text
	r, err := createWhenReady(c.Context, o, d)
	if late, is := errors.AsType[*operator.NotFollowedError](err); is && !late.Made && len(late.Absent) > 0 {
		r, err = createDespiteAbsent(c, o, d)
	}
	if err != nil {
		return err
	}
	return printText(c, "%s", createdText(name, r, old.Kind() == record.Tombstone))
}

// A node is ready a moment before it serves sequences, so createWhenReady waits for up to readyTries of readyPause.
const (
	readyTries = 10
	readyPause = 200 * time.Millisecond
)

// createWhenReady creates a sequence, as soon as a node has served sequences.
func createWhenReady(ctx context.Context, o operator.Commands, d operator.Definition) (record.Record, error) {
	r, err := o.Create(ctx, d)
	for k := 0; errors.Is(err, operator.ErrNoState) && k < readyTries; k++ {
		if err := o.Sleep(ctx, readyPause); err != nil {
			return r, err
		}
		r, err = o.Create(ctx, d)
	}
	return r, err
}

// createDespiteAbsent creates a deleted name again while nodes are absent, if --confirm names their workers.
func createDespiteAbsent(c *cli.Context, o operator.Commands, d operator.Definition) (r record.Record, err error) {
	absent, err := allowAbsent(c, &o)
	if err == nil {
		err = confirmDespiteAbsent(c, absent, d.Name+" was used before", "create "+d.Name+" again")
	}
	if err != nil {
		return r, err
	}
	return o.Create(c.Context, d)
}

// namesAndSections returns how many sequences a template creates, and how many sections a family has. Both are 0 for a
// plain sequence.
func namesAndSections(c *cli.Context, name string, m record.Mode) (most int64, sections int, err error) {
	switch {
	case c.IsSet("max-names") && !positions.IsPattern(name):
		return 0, 0, usageError("--max-names is for templates, whose names end with *, as in order:*")
	case c.IsSet("sections") && c.Int("sections") == 0:
		return 0, 0, usageError("--sections must be 1 to %d, not 0", positions.MaxSections)
	case c.IsSet("max-names"), c.IsSet("sections"):
		return c.Int64("max-names"), c.Int("sections"), nil
	case positions.IsPattern(name) && m.Owned():
		return 0, 0, usageError("with --mode ordered, %s is a family or a template. --sections N makes a family: its "+
			"names are created nowhere, and share N sections. --max-names N makes a template: it creates up to N "+
			"sequences, each with an owner of its own", name)
	case positions.IsPattern(name):
		return defaultMaxNames, 0, nil
	}
	return 0, 0, nil
}

// readDefinition returns the sequence that the command line describes. clusterLease returns the longest lease of the
// cluster, in ms, which is the hold without --hold. It is called when all flags are known to be right.
func readDefinition(
	c *cli.Context, name string, clusterLease func() (int64, error),
) (d operator.Definition, err error) {
	d.Name = name
	var known bool
	if d.Mode, known = record.ParseMode(c.String("mode")); !known {
		return d, usageError("--mode must be segment, strict or ordered, not %q", c.String("mode"))
	}
	if err := checkFlagsOfMode(c, d.Mode); err != nil {
		return d, err
	}
	d.StartGiven = c.IsSet("start")
	d.Map = sequence.Map{
		Start: c.Int64("start"), Increment: c.Int64("increment"), Max: sequence.MaxJavaScript,
		Salt: c.Int("salt"), Scatter: c.Int("scatter"),
	}
	if d.MaxNames, d.Sections, err = namesAndSections(c, d.Name, d.Mode); err != nil {
		return d, err
	}
	if c.IsSet("max") {
		if d.Max, err = parseMax(c.String("max")); err != nil {
			return d, err
		}
	}
	d.Settings = record.Settings{
		Block: c.Int64("block"), SupplyMs: defaultSupply.Milliseconds(), Ceiling: defaultCeiling,
	}
	if d.Max <= math.MaxInt32 {
		d.Ceiling = int32Ceiling
	}
	hold, err := readHold(c)
	if err != nil {
		return d, err
	}
	applySequenceFlags(c, hold, &d.Settings)
	d.HardCeiling = d.Ceiling
	leased := false
	switch {
	case d.Mode.Owned():
		d.HoldMs = c.Duration("lease").Milliseconds()
	case !d.Mode.Holds():
		d.HoldMs = strict.AnswerFor.Milliseconds()
	case !c.IsSet("hold"):
		leased, d.HoldMs = true, 1 // any that Check allows
	}
	if err := d.Check(); err != nil {
		return d, usageError("--%w", err)
	}
	if leased {
		d.HoldMs, err = clusterLease()
	}
	return d, err
}

// createdText returns a line that says what was created, and one that says how to ask for a value. again
// means that the name was deleted before.
func createdText(name string, r record.Record, again bool) string {
	what, ask, template := "sequence "+name, name, r.Kind() == record.Template
	if positions.IsPattern(name) {
		ask = strings.TrimSuffix(name, "*") + "1"
	}
	if template {
		what = "template " + name + ". Nodes create each sequence that it matches at its first use"
	}
	switch {
	case r.Kind() == record.Family:
		what = fmt.Sprintf("family %s with %s. Each name with its prefix has rising values from %d on", name,
			words.Count(int64(r.SectionCount), "section"), r.Value(r.Next))
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
