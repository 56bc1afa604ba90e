package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
)

func healthcheckCommand() *cli.Command {
	return &cli.Command{
		Name:  "healthcheck",
		Usage: "check whether a node is ready",
		Description: `Asks a node whether it is ready: it would answer GET, is not draining, and need not wait
for named sequences. Takes no ID. Prints OK and exits with 0, or prints the reason and
exits with 1. Exits with 3 if no node answers. Use it for the HEALTHCHECK of a container.

Examples:
  flaked healthcheck
  flaked healthcheck --addr unix:/run/flaked/flaked.sock --timeout 1s`,
		Flags:  nodeFlags(2 * time.Second),
		Action: healthcheck,
	}
}

func healthcheck(c *cli.Context) error {
	node, err := readNode(c)
	if err != nil {
		return err
	}
	lines, err := node.Ask(c.Context, "READY", 1)
	if reply, refused := errors.AsType[*ids.ReplyError](err); refused {
		if reply.Code == ids.WRONGNODE || accessAdvice(reply) != "" { // it does not say whether it is ready
			return failure("%w%s", err, replyAdvice(reply))
		}
		return failure("not ready: %s%s", reply.Line(), causeAdvice(reply))
	}
	if err != nil {
		return err
	}
	if lines[0] != "OK" {
		return failure("%s answered %.60q to READY. Check that it is a flaked node", c.String("addr"), lines[0])
	}
	return printText(c, "OK\n")
}
