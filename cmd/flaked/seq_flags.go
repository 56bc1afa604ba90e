package main

import (
	"math"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/sequence"
)

// settingFlags returns the flags that changeSettings reads. They have defaults if values is set.
func settingFlags(values bool) []cli.Flag {
	block := &cli.Int64Flag{Name: "block", Usage: "the fewest values that a node takes from ZooKeeper at once"}
	supply := &cli.DurationFlag{Name: "supply", Usage: "how long the values that a node takes at once should last"}
	hold := &cli.DurationFlag{Name: "hold", Usage: "how long a node issues values while it is disconnected from ZooKeeper"}
	ceiling := &cli.Int64Flag{Name: "ceiling", Usage: "the most values that all nodes together take in a second, at most the hard ceiling"}
	if values {
		block.Value, supply.Value = sequence.MinBlock, 15*time.Minute
		hold.DefaultText = "the cluster's longest lease"
		ceiling.DefaultText = "1000000, and 1000 if max is at most int32's"
	} else {
		for _, text := range []*string{&block.DefaultText, &supply.DefaultText, &hold.DefaultText, &ceiling.DefaultText} {
			*text = unchanged
		}
	}
	return in(callFlags, block, supply, hold, ceiling)
}

// unchanged is the default of a flag that changes something.
const unchanged = "unchanged"

func maxFlag(fallback, text string) cli.Flag {
	return &cli.StringFlag{Name: "max", Usage: "the greatest `VALUE`: int32, js, int64 or a number" + text, DefaultText: fallback}
}

func maxNamesFlag(fallback string) cli.Flag {
	return &cli.Int64Flag{Name: "max-names", Usage: "the most sequences that a template creates, 1 to 1000000", DefaultText: fallback}
}

// changeSettings writes the settings that the command line gives into s.
func changeSettings(c *cli.Context, s *seq.Settings) {
	if c.IsSet("block") {
		s.Block = c.Int64("block")
	}
	if c.IsSet("ceiling") {
		s.Ceiling = c.Int64("ceiling")
	}
	if c.IsSet("supply") {
		s.SupplyMs = c.Duration("supply").Milliseconds()
	}
	if c.IsSet("hold") {
		s.HoldMs = c.Duration("hold").Milliseconds()
	}
}

// maxNames are the values of --max that have a name.
var maxNames = []struct {
	name  string
	value int64
}{{"int32", math.MaxInt32}, {"js", sequence.MaxJavaScript}, {"int64", math.MaxInt64}}

func parseMax(text string) (int64, error) {
	for _, m := range maxNames {
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
	for _, m := range maxNames {
		if v == m.value {
			return m.name
		}
	}
	return strconv.FormatInt(v, 10)
}
