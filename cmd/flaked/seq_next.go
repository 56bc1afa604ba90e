package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/positions"
)

func seqNextCommand() *cli.Command {
	return &cli.Command{
		Name:      "next",
		Usage:     "print new values of a named sequence",
		ArgsUsage: "NAME [N]",
		Description: `Asks a node for N new values of a sequence (default: 1, at most 10,000), and prints them,
one per line.

Examples:
  flaked seq next order
  flaked seq next order 100 --addr ids.example.com:7609
  flaked seq next order --addr ids.example.com --tls-ca ca.pem --token-file token`,
		Flags:  nodeFlags(3 * time.Second),
		Action: seqNext,
	}
}

func seqNext(c *cli.Context) error {
	if c.NArg() == 0 {
		return usageError("expected one sequence, as in `%s order`", c.Command.HelpName)
	}
	name := c.Args().First()
	count, err := countArgument(c.Args().Tail())
	if err := cmp.Or(checkSequence(name), err); err != nil {
		return err
	}
	if positions.IsPattern(name) {
		return usageError("%s is a template or a family, and has no values itself. Ask for a name that it matches, "+
			"as in `%s %s1`", name, c.Command.HelpName, strings.TrimSuffix(name, "*"))
	}
	return printNumbers(c, "NEXT "+name, "a value", count, nextAdvice)
}
