package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/bits"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/worker"
)

func layoutChooseCommand() *cli.Command {
	return &cli.Command{
		Name:  "choose",
		Usage: "find the layouts that meet your needs",
		Description: `Lists the named layouts that meet the flags, and one designed for them: with the finest
tick for which there are enough bits, and today as its epoch. The first is recommended.

The default is four workers per node, because the worker of a node that disappears is
kept for it for a day. --spare changes that.

Examples:
  flaked layout choose
  flaked layout choose --rate 200000 --nodes 50 --until 2060
  flaked layout choose --rate 10000000 --nodes 8
  flaked layout choose --js --rate 20000 --nodes 20 -o json`,
		Flags: []cli.Flag{outputFlag(),
			&cli.Float64Flag{Name: "rate", Usage: "the most `IDS` per second that one node must make", Value: 100_000, EnvVars: env("rate")},
			&cli.IntFlag{Name: "nodes", Usage: "the highest number of nodes", Value: 10, EnvVars: env("nodes")},
			&cli.Float64Flag{Name: "spare", Usage: "workers per node", Value: 4, EnvVars: env("spare")},
			&cli.StringFlag{Name: "until", Usage: "how long the layout must last, `YEAR` or date", Value: "2060", EnvVars: env("until")},
			&cli.BoolFlag{Name: "js", Usage: "53 bits only, so that IDs are exact as JavaScript numbers", EnvVars: env("js"), DisableDefaultText: true},
		},
		Action: layoutChoose,
	}
}

// need says what a layout must be able to do.
type need struct {
	rate    float64 // IDs a second of one worker
	workers int
	until   time.Time
	bits    uint8 // of an ID, at most
}

// choice is one layout of the JSON of `layout choose`.
type choice struct {
	Layout string `json:"layout"`
	Name   string `json:"name,omitempty"`
	TickMs int64  `json:"tick_ms"`
	Bits   uint8  `json:"bits"`
	capacity
}

func layoutChoose(c *cli.Context) error {
	n := need{rate: c.Float64("rate"), bits: 63}
	nodes, spare := c.Int("nodes"), c.Float64("spare")
	switch {
	case !(n.rate > 0) || n.rate > 1e12:
		return usageError("--rate must be more than 0 and at most 1e12, not %v", n.rate)
	case nodes < 1 || nodes > 1<<20:
		return usageError("--nodes must be 1 to %d, not %d", 1<<20, nodes)
	case !(spare >= 1) || spare > 1000:
		return usageError("--spare must be 1 to 1000 workers per node, not %v", spare)
	}
	n.workers = int(math.Ceil(float64(nodes) * spare))
	now := time.Now()
	var err error
	if n.until, err = parseMoment(c.String("until")); err != nil {
		return usageError("--until: %w", err)
	}
	if !n.until.After(now) {
		return usageError("--until must be in the future, not %s", c.String("until"))
	}
	if c.Bool("js") {
		n.bits = 53
	}
	choices := choose(n, now)
	if len(choices) == 0 {
		return exitWith(exitFailure, "no layout of %d bits has %s IDs per second for each of %s workers until %s. Give a lower --rate, --nodes or --spare, or an earlier --until",
			n.bits, perSecond(n.rate), grouped(int64(n.workers)), n.until.Format(time.DateOnly))
	}
	return show(c, choices, func(w io.Writer) error { return showChoices(w, choices) })
}

// choose returns the layouts that meet n, the best first: leaf, which suits most users, then
// one designed for n, then the others with a name.
func choose(n need, now time.Time) []choice {
	var all []worker.Layout
	own, ok := design(n, now)
	for i, p := range worker.Presets() {
		if i == 1 && ok {
			all = append(all, own)
		}
		if n.met(p.Layout, now) {
			all = append(all, p.Layout)
		}
	}
	var choices []choice
	for _, l := range all {
		choices = append(choices, choice{l.String(), worker.PresetName(l), l.Unit.Milliseconds(), width(l), capacityOf(l)})
	}
	return choices
}

// width returns the number of bits in a layout's IDs.
func width(l worker.Layout) uint8 {
	top := l.Parts()[0]
	return top.Shift + top.Bits
}

func (n need) met(l worker.Layout, now time.Time) bool {
	return usableNow(l, now) == nil && width(l) <= n.bits && node.Slots(l) >= n.workers &&
		capacityOf(l).IDsPerSecond >= n.rate && !l.Expires().Before(n.until)
}

// design returns a layout with the finest tick for which there are enough bits. Spare bits go
// to time, sequence and worker in turn.
func design(n need, now time.Time) (worker.Layout, bool) {
	epoch := now.UTC().Truncate(24 * time.Hour)
	for _, tick := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		l := worker.Layout{
			Epoch: epoch.UnixMilli(), Unit: tick,
			TimeBits:     bitsFor(math.Ceil(float64(n.until.UnixMilli()-epoch.UnixMilli())/float64(tick.Milliseconds())) + 1),
			WorkerBits:   max(1, bitsFor(float64(n.workers))),
			SequenceBits: bitsFor(math.Ceil(n.rate * tick.Seconds())),
		}
		if l.Validate() != nil || !n.met(l, now) {
			continue
		}
		for more := true; more && width(l) < n.bits; {
			more = false
			for _, grow := range []struct {
				bits *uint8
				up   uint8 // more is not worth while
			}{{&l.TimeBits, 42}, {&l.SequenceBits, 16}, {&l.WorkerBits, 12}} {
				if *grow.bits < grow.up && width(l) < n.bits {
					*grow.bits++
					more = true
				}
			}
		}
		return l, true
	}
	return worker.Layout{}, false
}

// bitsFor returns the number of bits that distinguish so many things.
func bitsFor(things float64) uint8 {
	if things >= 1<<62 {
		return 63
	}
	return uint8(bits.Len64(uint64(max(things, 1)) - 1))
}

func showChoices(w io.Writer, choices []choice) error {
	t := textTable{right: map[int]bool{1: true, 2: true, 3: true}}
	t.add("NAME", "IDS A SECOND", "WORKERS", "TICK", "UNTIL", "LAYOUT")
	for _, c := range choices {
		t.add(orDash(c.Name), perSecond(c.IDsPerSecond), grouped(int64(c.Workers)), millis(c.TickMs).String(), day(c.EndsMs), c.Layout)
	}
	if err := t.print(w, false); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nrecommended: flaked cluster init --layout %s\n", cmp.Or(choices[0].Name, choices[0].Layout))
	return err
}
