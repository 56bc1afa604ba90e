package main

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/sequence"
)

func seqNext() *cli.Command {
	return &cli.Command{
		Name:      "next",
		Usage:     "print new values of a named sequence",
		ArgsUsage: "NAME",
		Description: `Asks a node for new values of a sequence, and prints them, one per line. More than
10,000 are fetched and printed in batches. If a batch fails, the error says how many
were printed, and exits with 1 or 3.

Examples:
  flaked seq next order
  flaked seq next order -n 100 --addr ids.example.com:7609
  flaked seq next order --addr ids.example.com --tls-ca ca.pem --token-file token`,
		Flags: append(in(callFlags,
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Usage: "the number of values", Value: 1}),
			append(accessFlags(), addrFlag(), timeoutFlag(3*time.Second))...),
		Action: nextValues,
	}
}

func nextValues(c *cli.Context) error {
	name, err := sequenceArgument(c)
	if err != nil {
		return err
	}
	if sequence.IsTemplate(name) {
		return usageError("%s is a template and has no values itself. Ask for a name that it matches, as in "+
			"`%s %s1`", name, c.Command.HelpName, strings.TrimSuffix(name, "*"))
	}
	n := c.Int("count")
	if n < 1 {
		return usageError("--count must be 1 or more, not %d", n)
	}
	return printBatches(c, n, batches{what: "a value", request: func(n int) string {
		if n == 1 {
			return "NEXT " + name
		}
		return "NEXT " + name + " " + strconv.Itoa(n)
	}, advice: refusedValues})
}

// refusedValues returns what to do about an error reply to NEXT, after a full stop. It returns "" for
// a reply that says so itself.
func refusedValues(reply *ids.ReplyError) string {
	reason := seq.Reason(reply.Reason())
	switch {
	case reply.Code == ids.NOPERM:
		return meaning(ids.NOPERM)
	case reply.Text == ids.ErrNoSequences.Text:
		return ". Ask a node that does"
	case reason == seq.NoSequence:
		return ". `flaked seq list` prints the sequences, and `flaked seq create` creates one"
	case reason == seq.Frozen:
		return ". `flaked seq show` says how"
	case reason == seq.CeilingReached:
		return ". `flaked seq set --ceiling` raises the ceiling"
	case reason == seq.Exhausted:
		return ". `flaked seq set --max` raises the max"
	case reply.Code == ids.ERR && reason != "":
		return ""
	case reason != "":
		return ". Ask another node, or try again in a moment"
	}
	return cmp.Or(meaning(reply.Code), accessAdvice(reply))
}
