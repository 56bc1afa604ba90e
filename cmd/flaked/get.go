package main

import (
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
	n, err := countArgument(c.Args().Slice())
	if err != nil {
		return err
	}
	return printNumbers(c, "GET", "an ID", n, replyAdvice)
}
