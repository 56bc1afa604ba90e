package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
)

// mostNumbers is the most numbers of one request.
const mostNumbers = 10_000

// countArgument returns N, the only argument that is left: 1 if there is none.
func countArgument(args []string) (int, error) {
	switch len(args) {
	case 0:
		return 1, nil
	case 1:
		n, err := strconv.Atoi(args[0])
		if err != nil || !within(n, mostNumbers) {
			return 0, usageError("N must be a whole number from 1 to %d, not %q", mostNumbers, args[0])
		}
		return n, nil
	}
	return 0, usageError("expected one N, got %d arguments", len(args))
}

// printNumbers prints n numbers, one per line, that a node answers to request. what is a number, for people: "an ID".
// advice returns what to do about an error reply, as text to append to it.
func printNumbers(c *cli.Context, request, what string, n int, advice func(*ids.ReplyError) string) error {
	node, err := readNode(c)
	if err != nil {
		return err
	}
	if n > 1 {
		request += " " + strconv.Itoa(n)
	}
	lines, err := node.Ask(c.Context, request, n)
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		return failure("%w%s", err, advice(reply))
	}
	if err != nil {
		return err
	}
	for _, line := range lines {
		if _, ok := dialog.Number([]byte(line)); !ok {
			return failure("%s answered %.60q, which is not %s. Check that it is a flaked node", node.Addr, line, what)
		}
	}
	return printText(c, "%s\n", strings.Join(lines, "\n"))
}
