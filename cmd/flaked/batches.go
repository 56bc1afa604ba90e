package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
)

// batches says how to ask a node for numbers.
type batches struct {
	what    string                       // a number, for people: "an ID"
	request func(n int) string           // the request for n numbers
	advice  func(*ids.ReplyError) string // what to do about an error reply, after a full stop
}

// largestBatch is the most numbers of one request that every node accepts.
const largestBatch = 10_000

// printBatches prints n numbers, one per line. A batch is printed when all of it has been read.
func printBatches(c *cli.Context, n int, b batches) error {
	node, err := newConversation(c)
	if err != nil {
		return err
	}
	for printed := 0; printed < n; {
		want := min(largestBatch, n-printed)
		lines, err := node.ask(c.Context, b.request(want), readLines(want))
		if err == nil {
			err = b.check(node.addr, lines)
		}
		if err != nil {
			return b.failed(err, printed, n)
		}
		if _, err := fmt.Fprintln(c.App.Writer, strings.Join(lines, "\n")); err != nil {
			return err
		}
		printed += want
	}
	return nil
}

// check returns an error unless all lines are numbers.
func (b batches) check(addr string, lines []string) error {
	for _, line := range lines {
		if v, err := strconv.ParseInt(line, 10, 64); err != nil || v < 0 {
			return exitWith(exitFailure, "%s answered %.60q, which is not %s. Check that it is a flaked node", addr,
				line, b.what)
		}
	}
	return nil
}

// failed adds to an error what to do, and how much of the output is there.
func (b batches) failed(err error, printed, n int) error {
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		err = exitWith(exitFailure, "%w%s", err, b.advice(reply))
	}
	if printed == 0 {
		return err
	}
	return fmt.Errorf("%d of %d printed, then failed: %w", printed, n, err)
}
