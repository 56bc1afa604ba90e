package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/record"
)

func seqNext() *cli.Command {
	return &cli.Command{
		Name:      "next",
		Usage:     "print new values of a named sequence",
		ArgsUsage: "NAME",
		Description: `Asks a node for new values of a sequence, and prints them, one per line.

Examples:
  flaked seq next order
  flaked seq next order -n 100 --addr ids.example.com:7609
  flaked seq next order --addr ids.example.com --tls-ca ca.pem --token-file token`,
		Flags: append(inCategory(callFlags,
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Value: 1,
				Usage: "the number of values, at most 10000"}),
			nodeFlags(3*time.Second)...),
		Action: nextValues,
	}
}

func nextValues(c *cli.Context) error {
	name, err := sequenceArgument(c)
	if err != nil {
		return err
	}
	if positions.IsTemplate(name) {
		return usageError("%s is a template or a family, and has no values itself. Ask for a name that it matches, "+
			"as in `%s %s1`", name, c.Command.HelpName, strings.TrimSuffix(name, "*"))
	}
	n := c.Int("count")
	if !within(n, mostNumbers) {
		return usageError("--count must be 1 to %d, not %d", mostNumbers, n)
	}
	return printNumbers(c, "NEXT "+name, "a value", n, refusedValues)
}

// refusedValues returns what to do about an error reply to NEXT, after a full stop. It returns "" for
// a reply that says so itself.
func refusedValues(reply *ids.ReplyError) string {
	reason := record.Reason(reply.Reason())
	switch {
	case reply.Code == ids.NOPERM, reply.Code == ids.WRONGNODE:
		return codeAdvice(reply.Code)
	case reply.Text == replies.ErrNoSequences.Text:
		return ". Ask a node that does"
	case reason == record.NoSequence:
		return ". `flaked seq list` prints the sequences, and `flaked seq create` creates one"
	case reason == record.Frozen && strings.Contains(reply.Text, "An operator must"):
		return ". `flaked seq show NAME`, of the sequence or its template, prints the command that does it"
	case reason == record.CeilingReached:
		return ": `flaked seq set --ceiling`" // the reply ends with: or raise the ceiling
	case reason == record.Exhausted:
		return ": `flaked seq set --max`" // the reply ends with: Raise it
	case reply.Code == ids.ERR && reason != "":
		return ""
	case reason != "":
		return elsewhere
	}
	return cmp.Or(codeAdvice(reply.Code), accessAdvice(reply))
}
