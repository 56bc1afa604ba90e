package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/credentials"
)

// defaultAddr is where a node listens unless told otherwise.
const defaultAddr = "127.0.0.1:" + defaultPort

const defaultPort = credentials.DefaultPort

// maxReply is longer than any line that a node answers with.
const maxReply = 4 << 10

// splitAddr takes an address apart; see credentials.SplitAddr.
func splitAddr(addr string) (network, address string, err error) { return credentials.SplitAddr(addr) }

// replyError is an error reply of a node: -CODE text.
type replyError struct{ addr, line string }

func (e *replyError) Error() string { return fmt.Sprintf("%s answered %s", e.addr, e.line) }

// code is the reply's first word without the dash.
func (e *replyError) code() string {
	code, _, _ := strings.Cut(strings.TrimPrefix(e.line, "-"), " ")
	return code
}

// ask sends one request to the node that the flags name and reads a reply of n
// lines. The error is a *replyError where the node answers with one, and has
// exitUnreachable where it does not answer.
func ask(c *cli.Context, request string, n int) ([]string, error) {
	ctx, addr, timeout := c.Context, c.String("addr"), c.Duration("timeout")
	network, address, err := splitAddr(addr)
	if err != nil {
		return nil, exitWith(exitUsage, "--addr: %w", err)
	}
	if timeout <= 0 {
		return nil, exitWith(exitUsage, "--timeout: %s is no time", timeout)
	}
	access, err := nodeAccess(c)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	lines, err := exchange(bounded, access, network, address, request, n)
	var refused *credentials.RefusedError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &refused):
		return nil, &replyError{addr, refused.Reply}
	case err != nil:
		return nil, unanswered(addr, timeout, err)
	case strings.HasPrefix(lines[0], "-"):
		return nil, &replyError{addr, lines[0]}
	}
	return lines, nil
}

func exchange(ctx context.Context, access credentials.Client, network, address, request string, n int) ([]string, error) {
	conn, err := access.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, request+"\n"); err != nil {
		return nil, err
	}
	return readLines(bufio.NewReaderSize(conn, maxReply), n)
}

// readLines reads n lines, or one if that is an error.
func readLines(r *bufio.Reader, n int) ([]string, error) {
	var lines []string
	for len(lines) < n {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(lines) > 0 {
			return nil, fmt.Errorf("the connection was closed after %d of %d lines", len(lines), n)
		}
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.TrimRight(string(line), "\r\n"))
		if strings.HasPrefix(lines[0], "-") {
			break
		}
	}
	return lines, nil
}

// unanswered says why a node did not answer, and what to do.
func unanswered(addr string, timeout time.Duration, err error) error {
	why, advice := err.Error(), "check --addr (FLAKED_ADDR)"
	if tls, ok := tlsAdvice(err); ok {
		return exitWith(exitUnreachable, "no answer from a node at %s: %s: %s", addr, why, tls)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		why, advice = fmt.Sprintf("no answer within %s", timeout), "check that it is a flaked node; --timeout waits longer"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		why, advice = "nobody listens there", "start a node with `flaked serve`, or name another with --addr (FLAKED_ADDR)"
	case errors.Is(err, bufio.ErrBufferFull):
		why, advice = "its answer is not in short lines", "check that it is a flaked node"
	case errors.Is(err, io.EOF):
		why, advice = "it closed the connection without an answer", "check that it is a flaked node, and that it is not stopping"
	}
	return exitWith(exitUnreachable, "no answer from a node at %s: %s: %s", addr, why, advice)
}
