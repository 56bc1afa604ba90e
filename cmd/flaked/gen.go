package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

func genCommand() *cli.Command {
	return &cli.Command{
		Name:      "gen",
		Usage:     "make IDs without a node, for scripts and fixtures",
		ArgsUsage: "[COUNT]",
		Description: `Makes COUNT IDs (default: 1) in this process and prints them, one per line. It
COORDINATES WITH NOBODY: two runs at the same moment with the same --worker make the
same IDs, and so does a node that holds that worker. It keeps nothing from one run to
the next. Use it for test data and measurements, but never for keys that are stored
with a cluster's IDs. Use ` + "`flaked get`" + ` for such keys.

With --at the IDs are of that moment and of later ones, and every run makes the same
IDs. Use that for fixtures, and for the bounds of queries by time.

--kind uuid4 and --kind uuid7 print UUIDs instead: 128 bits, random (uuid4) or sorted
by time (uuid7). They need no worker and no cluster, so they are simpler than
snowflakes where 128 bits are acceptable.

Formats of snowflakes: ` + encodingNames() + `. All but decimal
have a fixed width and sort as the IDs do. base32 is Crockford's, base58 Bitcoin's.

Examples:
  flaked gen 3
  flaked gen --worker 7 --layout twitter --datacenter 3 --format hex
  flaked gen 1000 --at 2026-01-01T00:00:00Z >fixture.txt
  flaked gen --kind uuid7 5`,
		Flags: []cli.Flag{
			layoutFlag("leaf"),
			&cli.Int64Flag{Name: "worker", Usage: "the worker `NUMBER` in the IDs", EnvVars: env("worker")},
			&cli.Int64Flag{Name: "datacenter", Usage: "the datacenter `NUMBER` in the IDs, if the layout has the field", EnvVars: env("datacenter")},
			&cli.StringFlag{Name: "at", Usage: "the `TIME` of the first ID, as 2026-01-31T12:00:00Z, a date, or Unix milliseconds", DefaultText: "now", EnvVars: env("at")},
			&cli.IntFlag{Name: "count", Usage: "number of IDs, instead of COUNT", Value: 1, EnvVars: env("count")},
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT` of the IDs: " + encodingNames(), Value: "decimal", EnvVars: env("format")},
			&cli.StringFlag{Name: "kind", Usage: "the `KIND` of IDs: snowflake, uuid4, uuid7", Value: "snowflake", EnvVars: env("kind")},
			&cli.StringFlag{Name: "sequence-start", Usage: "the first sequence value of a tick: zero, random (below 100, as in Leaf) or carry-on (where the last tick ended)", Value: "zero", EnvVars: env("sequence-start")},
			&cli.StringFlag{Name: "segment-start", Usage: "the first segment of a tick, if the layout has the field: zero or random", Value: "zero", EnvVars: env("segment-start")},
		},
		Action: gen,
	}
}

// maxGen is the highest COUNT. A higher one is most likely a typing error.
const maxGen = 1_000_000_000

func gen(c *cli.Context) error {
	count, err := genCount(c)
	if err != nil {
		return err
	}
	next, err := genSource(c)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.App.Writer)
	for range count {
		text, err := next(c.Context)
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return out.Flush()
}

func genCount(c *cli.Context) (int, error) {
	count := c.Int("count")
	switch {
	case c.NArg() > 1:
		return 0, usageError("expected one COUNT, got %d arguments", c.NArg())
	case c.NArg() == 1 && c.IsSet("count"):
		return 0, usageError("COUNT and --count are both given. Give one of them")
	case c.NArg() == 1:
		if _, err := fmt.Sscanf(c.Args().First(), "%d", &count); err != nil || fmt.Sprint(count) != c.Args().First() {
			return 0, usageError("COUNT must be a whole number of at least 1, not %q", c.Args().First())
		}
	}
	if count < 1 || count > maxGen {
		return 0, usageError("COUNT must be 1 to %d, not %d", maxGen, count)
	}
	return count, nil
}

// genSource returns a function that returns one new ID or UUID at each call, as text.
func genSource(c *cli.Context) (func(context.Context) (string, error), error) {
	format, err := worker.ParseEncoding(c.String("format"))
	if err != nil {
		return nil, usageError("--format must be one of %s, not %q", encodingNames(), c.String("format"))
	}
	kind := c.String("kind")
	if kind != "snowflake" {
		for _, flag := range []string{"worker", "at", "format"} {
			if c.IsSet(flag) {
				return nil, usageError("--%s is only for snowflakes. Leave it out with --kind %s", flag, kind)
			}
		}
	}
	switch kind {
	case "snowflake":
		return genSnowflakes(c, format)
	case "uuid4":
		return func(context.Context) (string, error) { return textOf(uuid.NewRandom()) }, nil
	case "uuid7":
		return func(context.Context) (string, error) { return textOf(uuid.NewV7()) }, nil
	}
	return nil, usageError("--kind must be snowflake, uuid4 or uuid7, not %q", kind)
}

func textOf(id uuid.UUID, err error) (string, error) { return id.String(), err }

func genSnowflakes(c *cli.Context, format worker.Encoding) (func(context.Context) (string, error), error) {
	layout, err := layoutOf("--layout", cmp.Or(c.String("layout"), "leaf"))
	if err != nil {
		return nil, err
	}
	start, err := sequenceStart(c)
	if err != nil {
		return nil, err
	}
	segment, err := segmentStart(c)
	if err != nil {
		return nil, err
	}
	cfg := worker.GeneratorConfig{
		Layout: layout, Datacenter: c.Int64("datacenter"), Worker: c.Int64("worker"),
		Clock: timeguard.NewIssuing(timeguard.System()), Rollback: timeguard.RollbackPolicy{}, SequenceStart: start, SegmentStart: segment,
	}
	first := time.Now()
	if text := c.String("at"); text != "" {
		if first, err = parseAt(text); err != nil {
			return nil, usageError("--at: %w", err)
		}
		clock := &setClock{first.UnixNano()}
		cfg.Clock, cfg.Sleep = clock, clock.sleep
		cfg.Rand = rand.New(rand.NewPCG(0, uint64(clock.ns))).Uint32N // the same at every run
	}
	if err := usableNow(layout, first); err != nil {
		return nil, usageError("--layout %s at %s: %w", cmp.Or(c.String("layout"), "leaf"), first.UTC().Format(time.RFC3339), err)
	}
	g, err := worker.NewGenerator(cfg)
	if err != nil {
		return nil, usageError("%w", err)
	}
	g.Extend(layout.MaxTick() + 1)
	return func(ctx context.Context) (string, error) {
		id, err := g.Next(ctx)
		return format.Encode(id), err
	}, nil
}

func encodingNames() string {
	var names []string
	for _, e := range worker.Encodings() {
		names = append(names, e.String())
	}
	return strings.Join(names, ", ")
}

// parseAt parses Unix milliseconds, and all that parseMoment parses. A number of up to
// four digits is a year.
func parseAt(text string) (time.Time, error) {
	var ms int64
	if _, err := fmt.Sscanf(text, "%d", &ms); err == nil && fmt.Sprint(ms) == text && len(text) > 4 {
		return time.UnixMilli(ms), nil
	}
	t, err := parseMoment(text)
	if err != nil {
		err = fmt.Errorf("%q is not a time. Give one such as 2026-01-31T12:00:00Z, 2026-01-31 or 1767225600000", text)
	}
	return t, err
}

// setClock stands still until sleep advances it, so that every run makes the same IDs.
type setClock struct{ ns int64 }

func (c *setClock) Now() int64 { return c.ns }

func (c *setClock) sleep(_ context.Context, d time.Duration) error {
	c.ns += int64(d)
	return nil
}
