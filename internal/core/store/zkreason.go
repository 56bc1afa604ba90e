package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// worded is an error whose text is for people.
type worded struct{ err error }

func (w worded) Error() string { return reason(w.err) }
func (w worded) Unwrap() error { return w.err }

// tlsError: the handshake with a server failed.
type tlsError struct {
	server string
	err    error
}

func (e *tlsError) Error() string { return "TLS with " + e.server + " failed: " + reason(e.err) }
func (e *tlsError) Unwrap() error { return e.err }

// ungreeted: a server ended the connection before its greeting.
type ungreeted struct{ err error }

func (e *ungreeted) Error() string {
	if stranger, ok := errors.AsType[*strangerError](e.err); ok {
		return stranger.Error()
	}
	return reason(e.err) + " before its greeting. It has no quorum, or too many connections (maxClientCnxns), or is " +
		"not a ZooKeeper"
}
func (e *ungreeted) Unwrap() error { return e.err }

// strangerError: what answers does not speak ZooKeeper's protocol.
type strangerError struct{ why string }

func (e *strangerError) Error() string { return "what answers there is not a ZooKeeper: " + e.why }

// noConnection: a call that ended with err had no connection, for the reason why.
type noConnection struct{ why, err error }

func (e *noConnection) Error() string { return "no connection: " + reason(e.why) }
func (e *noConnection) Unwrap() error { return e.err }

// reason returns why a connection failed or ended, in words for people. It returns err's own text
// for an error that it does not know.
func reason(err error) string {
	if err == nil {
		return "the session ended"
	}
	if e, ok := errors.AsType[*tlsError](err); ok {
		return e.Error()
	}
	if e, ok := errors.AsType[*ungreeted](err); ok {
		return e.Error()
	}
	at := ""
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		at = " by " + op.Addr.String()
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return fmt.Sprintf("host %s not found", e.Name)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused" + at
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset" + at
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed by ZooKeeper"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return strings.TrimPrefix(err.Error(), "zk: ")
}
