package main

import (
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
)

func getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "print new IDs",
		ArgsUsage: "[N]",
		Description: `Asks a node for N new IDs (default: 1, at most 10,000), and prints them, one per line.

Examples:
  flaked get
  flaked get 100 --addr ids.example.com:7609
  flaked get --addr ids.example.com --tls-ca ca.pem --token-file token
  flaked get 3 | flaked decode`,
		Flags:  nodeFlags(3 * time.Second),
		Action: get,
	}
}

func get(c *cli.Context) error {
	n := 1
	switch {
	case c.NArg() > 1:
		return usageError("expected one N, got %d arguments", c.NArg())
	case c.NArg() == 1:
		var err error
		if n, err = strconv.Atoi(c.Args().First()); err != nil || !within(n, mostNumbers) {
			return usageError("N must be a whole number from 1 to %d, not %q", mostNumbers, c.Args().First())
		}
	}
	return printNumbers(c, "GET", "an ID", n, replyAdvice)
}
