package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/positions"
)

func seqNextCommand() *cli.Command {
	return &cli.Command{
		Name:      "next",
		Usage:     "print new values of a named sequence",
		ArgsUsage: "NAME",
		Description: `Asks a node for new values of a sequence, and prints them, one per line.

Examples:
  flaked seq next order
  flaked seq next order -n 100 --addr ids.example.com:7609
  flaked seq next order --addr ids.example.com --tls-ca ca.pem --token-file token`,
		Flags: append(inCategory(categoryCommandLineOnly,
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Value: 1,
				Usage: "the number of values, at most 10000"}),
			nodeFlags(3*time.Second)...),
		Action: seqNext,
	}
}

func seqNext(c *cli.Context) error {
	name, err := sequenceArgument(c)
	if err != nil {
		return err
	}
	if positions.IsPattern(name) {
		return usageError("%s is a template or a family, and has no values itself. Ask for a name that it matches, "+
			"as in `%s %s1`", name, c.Command.HelpName, strings.TrimSuffix(name, "*"))
	}
	n := c.Int("count")
	if !within(n, mostNumbers) {
		return usageError("--count must be 1 to %d, not %d", mostNumbers, n)
	}
	return printNumbers(c, "NEXT "+name, "a value", n, nextAdvice)
}
