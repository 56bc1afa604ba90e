package main

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// unchanged is the default of a flag that changes something.
const unchanged = "unchanged"

// sequenceFlags returns the flags that applySequenceFlags reads. They have defaults if create is set.
func sequenceFlags(create bool) []cli.Flag {
	block := int64(0)
	fallback := func(string) string { return unchanged }
	if create {
		block = positions.MinBlock
		fallback = func(text string) string { return text }
	}
	return inCategory(categoryCommandLineOnly,
		&cli.Int64Flag{Name: "block", Value: block, DefaultText: fallback(""),
			Usage: "the fewest values that a node takes from ZooKeeper at once"},
		&cli.StringFlag{Name: "hold", DefaultText: fallback("the cluster's longest lease, with values for 15m"),
			Usage: "the `TIME` for which a node issues values while it is disconnected from ZooKeeper. It takes " +
				"values for that time, and for 15m at least. " + forever + ": also after a boot of its machine. Then " +
				"the name can never be purged, and the time that values are taken for stays as it is"},
		&cli.Int64Flag{Name: "ceiling", DefaultText: fallback("1000000, and 1000 if max is at most int32's"),
			Usage: "the most values that all nodes together take in a second, later at most the first ceiling"})
}

func maxFlag(fallback, text string) cli.Flag {
	return &cli.StringFlag{Name: "max", Usage: "the greatest `VALUE`: int32, js, int64 or a number" + text,
		DefaultText: fallback}
}

func maxNamesFlag(fallback string) cli.Flag {
	return &cli.Int64Flag{Name: "max-names", Usage: "the most sequences that a template creates, 1 to 1000000",
		DefaultText: fallback}
}

// defaultSupply is the supply of a sequence without --hold, and the least one with it.
const defaultSupply = 15 * time.Minute

// applySequenceFlags sets those fields of s whose flags were given. hold is the value of readHold.
func applySequenceFlags(c *cli.Context, hold time.Duration, s *record.Settings) {
	for name, to := range map[string]*int64{"block": &s.Block, "ceiling": &s.Ceiling} {
		if c.IsSet(name) {
			*to = c.Int64(name)
		}
	}
	if c.IsSet("hold") {
		s.HoldMs = hold.Milliseconds()
	}
	if c.IsSet("hold") && !s.Endless() {
		s.SupplyMs = max(s.HoldMs, defaultSupply.Milliseconds())
	}
}

// forever is record.Forever in words.
const forever = "forever"

// readHold returns --hold, 0 if it is not given.
func readHold(c *cli.Context) (time.Duration, error) {
	switch text := c.String("hold"); text {
	case "":
		return 0, nil
	case forever:
		return record.Forever, nil
	default:
		hold, err := time.ParseDuration(text)
		if err != nil {
			return 0, usageError("--hold: %q is neither a time, such as 24h, nor %s", text, forever)
		}
		return hold, nil
	}
}

// endless reports whether a hold, or what is left of one, is that of record.Forever.
func endless(ms int64) bool { return ms >= record.Forever.Milliseconds() }

// holdText returns a hold in words.
func holdText(ms int64) string {
	if endless(ms) {
		return forever
	}
	return millis(ms).String()
}

// purgeableIn returns in words how long a tombstone must stay.
func purgeableIn(ms int64) string {
	if endless(ms) {
		return "never"
	}
	return millis(ms).String()
}

// namedMaxes are the values of --max that have a name.
var namedMaxes = []struct {
	name  string
	value int64
}{{"int32", math.MaxInt32}, {"js", sequence.MaxJavaScript}, {"int64", math.MaxInt64}}

func parseMax(text string) (int64, error) {
	for _, m := range namedMaxes {
		if text == m.name {
			return m.value, nil
		}
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		return 0, usageError("--max: %q is not int32, js, int64 or a whole number of 64 bits", text)
	}
	return v, nil
}

// maxText returns the name of a max, or its digits.
func maxText(v int64) string {
	for _, m := range namedMaxes {
		if v == m.value {
			return m.name
		}
	}
	return strconv.FormatInt(v, 10)
}

// checkFlagsOfMode returns an error if a flag is given that sequences in this mode do not use.
func checkFlagsOfMode(c *cli.Context, m record.Mode) error {
	for _, row := range []struct {
		unused bool
		flags  []string
		why    string
	}{
		{m.Owned(), []string{"hold"},
			"not for ordered sequences: their owner takes values for some seconds, and issues for --lease without " +
				"ZooKeeper. Leave it out"},
		{!m.Holds(), []string{"block", "ceiling", "hold"},
			"not for strict sequences: nodes keep none of their values. Leave it out"},
		{!m.Owned(), []string{"lease", "sections"}, "for ordered sequences. Leave it out, or give --mode ordered"},
	} {
		if i := slices.IndexFunc(row.flags, c.IsSet); row.unused && i >= 0 {
			return usageError("--%s is %s", row.flags[i], row.why)
		}
	}
	return nil
}
