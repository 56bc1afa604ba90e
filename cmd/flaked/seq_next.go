package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/sequence"
)

func seqNext() *cli.Command {
	return &cli.Command{
		Name:      "next",
		Usage:     "print new values of a named sequence",
		UsageText: "flaked seq next NAME [flags]",
		ArgsUsage: "NAME",
		Description: `Asks a node for new values of a sequence, and prints them, one per line: all of them or
none. The node limits their number (--max-batch of flaked serve, 10,000 by default).

Examples:
  flaked seq next order
  flaked seq next order -n 100 --addr ids.example.com:7609
  flaked seq next order --addr ids.example.com --tls-ca ca.pem --token-file token`,
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Usage: "the number of values", Value: 1, Category: callFlags},
			addrFlag(), timeoutFlag(3 * time.Second),
		}, accessFlags()...),
		Action: nextValues,
	}
}

func nextValues(c *cli.Context) error {
	name, err := sequenceArgument(c)
	if err != nil {
		return err
	}
	if sequence.IsTemplate(name) {
		return usageError("%s is a template and has no values itself. Ask for a name that it matches, as in `%s %s1`", name, c.Command.HelpName, strings.TrimSuffix(name, "*"))
	}
	n := c.Int("count")
	if n < 1 {
		return usageError("--count must be 1 or more, not %d", n)
	}
	request := "NEXT " + name
	if n > 1 {
		request += " " + strconv.Itoa(n)
	}
	values, err := ask(c, request, n)
	var reply *replyError
	if errors.As(err, &reply) {
		return exitWith(exitFailure, "%w%s", err, refusedValues(reply))
	}
	if err != nil {
		return err
	}
	for _, v := range values {
		if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < 0 {
			return exitWith(exitFailure, "%s answered %.60q, which is not a value. Check that it is a flaked node", c.String("addr"), v)
		}
	}
	_, err = fmt.Fprintln(c.App.Writer, strings.Join(values, "\n"))
	return err
}

// refusedValues returns what to do about an error reply to NEXT, after a full stop. It returns "" for
// a reply that says so itself.
func refusedValues(reply *replyError) string {
	switch {
	case reply.code() == "NOPERM":
		return meaning("NOPERM")
	case strings.Contains(reply.line, " reason=no-sequence this node"):
		return ". Ask a node that does"
	case reply.code() == "ERR" && strings.Contains(reply.line, " reason="), reply.code() == "EXHAUSTED", strings.Contains(reply.line, " reason=ceiling"):
		return ""
	case strings.Contains(reply.line, " reason="):
		return ". Ask another node, or try again in a moment"
	}
	return cmp.Or(meaning(reply.code()), accessAdvice(reply))
}
