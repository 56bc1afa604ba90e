package main

import (
	"strconv"

	"github.com/urfave/cli/v2"
)

func workersCommand() *cli.Command {
	return &cli.Command{
		Name:        "workers",
		Usage:       "release a worker that a node holds",
		Subcommands: []*cli.Command{workersRelease()},
	}
}

func workerArgument(c *cli.Context) (int, error) {
	if c.NArg() != 1 {
		return 0, usageError("expected one worker, as in `%s 7`, got %d arguments", c.Command.HelpName, c.NArg())
	}
	n, err := strconv.ParseUint(c.Args().First(), 10, 16)
	if err != nil {
		return 0, usageError("%q is not a worker. Give a number, such as 7", c.Args().First())
	}
	return int(n), nil
}
