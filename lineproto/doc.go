// Package lineproto implements the wire protocol of a node: it parses requests,
// executes them against a Backend and owns the connections. It knows no ZooKeeper and
// makes no IDs.
//
// It has four parts. Each can be replaced without the others:
//
//   - a framing takes requests (verb and arguments) off the input and renders replies:
//     plain lines (parse.go, telnet.go, reply.go) and RESP (resp.go, resp_reply.go).
//     One connection may alternate between both;
//   - the command table executes a request against the Backend (commands.go);
//   - a session joins the two. It touches no socket: bytes in, bytes out (session.go,
//     request.go, order.go, sequences.go);
//   - an engine owns sockets, buffers and deadlines (engine.go, accept.go). On Linux an
//     event loop serves plain connections (loop_linux.go, looprun_linux.go,
//     loopio_linux.go, loopend_linux.go). A goroutine serves each other connection
//     (conn.go).
//
// # Turns
//
// Connections that ask for many IDs take turns. A connection reserves a slice of its
// IDs in each turn. turns.go decides which connection is next and how many IDs it gets.
// Each event loop has a queue of its own (looprun_linux.go). Connections with goroutines
// share one (relay.go).
//
// # Named sequences
//
// Config.Sequences answers requests for sequences. It never blocks. If a value is not
// there yet, the session asks its engine to wake it, and consume returns needWake. Only
// that connection waits. Requests for other sequences that were pipelined behind wait at the
// same time (ahead.go).
//
// # Plain framing
//
// A request is a line of at most MaxLine bytes, not counting its ending, LF or CRLF.
// The reply has the request's ending. Words are separated by blanks or tabs, verbs are
// case-insensitive, blank lines are ignored, and telnet negotiation is skipped. Numbers
// are digits only: no sign, no leading zero, no point. So one number has one spelling,
// and a typing error is an error instead of another request.
//
// Requests may be pipelined without limit and are answered in order. Replies are
// flushed when the input is drained or 32 KiB are waiting. A client that pipelines more
// than its own and the kernel's buffers hold must read while it writes. Otherwise it is
// disconnected after WriteTimeout.
//
// # RESP
//
// A request whose first byte is '*' is an array of bulk strings, as Redis clients send
// it. It has at most MaxArgs strings and MaxArray bytes. Its reply is RESP too. Errors
// are the same bytes in both framings. A malformed array ends the connection after one
// error. An unfinished array stays in the engine's buffer up to MaxLine bytes. A longer
// one moves to the session, so an engine needs room for no more than a line.
//
// # The end
//
// At end of input (half-close) everything received is answered, even a last line
// without an ending. So `printf GET | nc -N host port` prints an ID, as its user
// expects. A request that was cut short can only waste IDs. A line that is unfinished
// when the server stops is not answered. An array that the end of input cuts short is
// not answered either.
//
// A bad request takes no ID.
package lineproto
