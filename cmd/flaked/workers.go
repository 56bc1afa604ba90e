package main

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
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

func inLayout(worker int, cl coordinator.Cluster) error {
	if worker >= cl.Slots {
		return exitWith(exitFailure, "there is no worker %d: the cluster's layout has workers 0 to %d", worker, cl.Slots-1)
	}
	return nil
}
