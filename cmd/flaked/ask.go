package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/view"
)

// defaultAddr is the default of --listen and of --addr.
const defaultAddr = "127.0.0.1:" + dialog.DefaultPort

// maxReply is longer than any reply of a node: a status with all peers that it has met, or 10,000 values.
const maxReply = 4 << 20

// nodeAt is a node that is asked at an address for clients.
type nodeAt struct {
	access  dialog.Client
	addr    string
	timeout time.Duration
}

// givenNode returns the node of --addr.
func givenNode(c *cli.Context) (nodeAt, error) {
	creds, err := nodeAccess(c)
	if name := c.String("cluster"); name != "" { // else there is nothing to compare the only connection with
		creds.Cluster, err = dialog.Want(name), cmp.Or(err, checkClusterFlag(name))
	}
	return nodeAt{creds, c.String("addr"), c.Duration("timeout")}, err
}

func checkClusterFlag(name string) error {
	if err := dialog.CheckCluster(name); err != nil {
		return usageError("--cluster %w", err)
	}
	return nil
}

// ask sends one request and returns the lines of the reply, of which there must be n. An error reply becomes an
// *ids.ReplyError. If the node does not answer, the error has the code exitUnreachable.
func (a nodeAt) ask(ctx context.Context, request string, n int) ([]string, error) {
	if _, _, err := dialog.SplitAddr(a.addr); err != nil {
		return nil, usageError("--addr: %w", err)
	}
	if a.timeout <= 0 {
		return nil, usageError("--timeout must be positive, not %s", a.timeout)
	}
	bounded, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	lines, err := a.exchange(bounded, request, n)
	_, refused := errors.AsType[*ids.ReplyError](err)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case refused:
		return nil, err
	case err != nil:
		return nil, unanswered(a.addr, a.timeout, err)
	case strings.HasPrefix(lines[0], "HTTP/"):
		return nil, unanswered(a.addr, a.timeout, errHTTP)
	}
	return lines, nil
}

// exchange sends a request on a new connection, and returns the n lines of its reply.
func (a nodeAt) exchange(ctx context.Context, request string, n int) ([]string, error) {
	conn, err := a.access.Dial(ctx, a.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer dialog.Interrupt(ctx, conn)()
	if _, err := io.WriteString(conn, request+"\n"); err != nil {
		return nil, err
	}
	lines := make([]string, 0, n)
	for in := dialog.NewReader(conn, a.addr, maxReply); len(lines) < n; {
		line, err := in.Line()
		switch {
		case errors.Is(err, io.EOF) && len(lines) > 0:
			return nil, fmt.Errorf("the connection was closed after line %d of the reply", len(lines))
		case err != nil:
			return nil, err
		case in.Bytes() > maxReply:
			return nil, dialog.ErrLong
		case len(lines) == 0 && bytes.HasPrefix(line, []byte{'-'}): // it replaces all lines
			return nil, in.Refusal(line)
		}
		lines = append(lines, string(line))
	}
	return lines, nil
}

// silentError means that a node did not answer.
type silentError struct {
	addr, why string
	err       error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("no answer from a node at %s: %s", e.addr, e.why)
}
func (e *silentError) Unwrap() error { return e.err }

const startOne = ". Start a node with `flaked serve`, or give another with --addr (FLAKED_ADDR)"

var errHTTP = errors.New("what answers there speaks HTTP, as a node does at its --admin address")

// unanswered returns the error for a node that did not answer: the reason, and what to do.
func unanswered(addr string, timeout time.Duration, err error) error {
	if network, ok := errors.AsType[*dialog.NetworkError](err); ok {
		err = network.Err // it names the address
	}
	why, advice := view.InPlainWords(err.Error()), accessAdvice(err)
	switch kind := dialog.KindOf(err); {
	case advice != "":
	case kind == dialog.TimedOut:
		why, advice = fmt.Sprintf("timed out after %s", timeout), ". Check that it is a flaked node, or wait longer "+
			"with --timeout"
	case kind == dialog.ConnectionRefused:
		why, advice = "connection refused", startOne
	case kind == dialog.SocketNotFound:
		why, advice = "socket not found", startOne
	case errors.Is(err, dialog.ErrLong):
		why, advice = "its reply is longer than any of a node", ". Check that it is a flaked node"
	case errors.Is(err, errHTTP):
		advice = ". Give the node's --listen address, whose port is " + dialog.DefaultPort + " by default"
	case kind == dialog.ConnectionClosed:
		why, advice = "the connection was closed without a reply", ". Check that it is a flaked node, and that it is "+
			"not stopping"
	default:
		advice = ". Check --addr (FLAKED_ADDR)"
	}
	return exitWith(exitUnreachable, "%w%s", &silentError{addr, why, err}, advice)
}
