// Package poll asks nodes for the commands of operators. An address is not an identity, since another node may answer
// there by now. So an answer counts only for the node and the cluster that it names.
//
//   - Target.Ask asks one node for some lines.
//   - Asker.AskWorkers, AskAt and AskAllAt ask nodes for their own state, which `flaked status` shows.
//   - AskCluster asks all nodes that may run, also those that ZooKeeper has lost: a Survey.
package poll

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/words"
)

// maxReply is longer than any reply of a node: a status with all peers that it has met, or 10,000 values.
const maxReply = 4 << 20

// Target is a node that is asked at an address for clients.
type Target struct {
	Access  dialog.Client
	Addr    string
	Timeout time.Duration
}

// Ask sends one request and returns the lines of the reply, of which there must be count. An error reply becomes an
// *ids.ReplyError. If the node does not answer, the error is a *SilentError.
func (t Target) Ask(ctx context.Context, request string, count int) ([]string, error) {
	bounded, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	lines, err := t.exchange(bounded, request, count)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil && strings.HasPrefix(lines[0], "HTTP/") {
		err = ErrHTTP
	}
	if _, refused := errors.AsType[*ids.ReplyError](err); err != nil && !refused {
		err = NewSilentError(t.Addr, t.Timeout, err)
	}
	return lines, err
}

// exchange sends a request on a new connection, and returns the lines of its reply, count in all.
func (t Target) exchange(ctx context.Context, request string, count int) ([]string, error) {
	conn, err := t.Access.Dial(ctx, t.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer dialog.Interrupt(ctx, conn)()
	if _, err := io.WriteString(conn, request+"\n"); err != nil {
		return nil, err
	}
	lines := make([]string, 0, count)
	for in := dialog.NewReader(conn, t.Addr, maxReply); len(lines) < count; {
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

// SilentError means that a node did not answer.
type SilentError struct {
	Addr, Why string
	Err       error
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("no answer from a node at %s: %s", e.Addr, e.Why)
}
func (e *SilentError) Unwrap() error { return e.Err }

// ErrHTTP is in the SilentError of a server for HTTP.
var ErrHTTP = errors.New("what answers there speaks HTTP, as a node does at its --admin address")

// NewSilentError returns the error for a node that did not answer within timeout, because of err.
func NewSilentError(addr string, timeout time.Duration, err error) *SilentError {
	if network, ok := errors.AsType[*dialog.NetworkError](err); ok {
		err = network.Err // it names the address
	}
	why := words.PlainError(err.Error())
	switch kind := dialog.KindOf(err); {
	case kind == dialog.TimedOut:
		why = fmt.Sprintf("timed out after %s", timeout)
	case kind == dialog.ConnectionRefused:
		why = "connection refused"
	case kind == dialog.SocketNotFound:
		why = "socket not found"
	case errors.Is(err, dialog.ErrLong):
		why = "its reply is longer than any of a node"
	case kind == dialog.ConnectionClosed:
		why = "the connection was closed without a reply"
	}
	return &SilentError{addr, why, err}
}
