// Package lineproto is the wire: it parses requests, executes them against a
// Backend and owns the connections. It knows no ZooKeeper and makes no IDs.
//
// Four parts, each replaceable beside the others:
//
//   - a framing takes requests (verb and arguments) off the input and renders
//     replies: plain lines (parse.go, telnet.go, reply.go) and RESP (resp.go,
//     resp_reply.go). They may alternate in one connection;
//   - the command table executes a request against the Backend (commands.go);
//   - a session joins the two and is pure: bytes in, bytes out (session.go,
//     order.go);
//   - an engine owns sockets, buffers and deadlines (engine.go, accept.go): on
//     Linux an event loop for plain connections (loop_linux.go,
//     driver_linux.go, loopio_linux.go), else a goroutine for each (conn.go).
//
// # Turns
//
// Requests for many IDs are reserved in slices, and connections take turns at
// them: turns.go decides who is next and how many IDs it gets. A loop has a queue
// of its own (driver_linux.go), connections with goroutines share one (relay.go).
//
// # Plain framing
//
// A request is a line of at most MaxLine bytes, not counting its ending, LF or
// CRLF; the reply has the request's ending. Words are separated by blanks or
// tabs, verbs are case-insensitive, blank lines are ignored, telnet
// negotiation is skipped. Numbers are digits only: no sign, no leading zero,
// no point, so that one number has one spelling and a typing error is an
// error, not another request.
//
// Requests may be pipelined without limit and are answered in order. Replies
// are flushed when the input is drained or 16 KiB are waiting; a client that
// pipelines more than its and the kernel's buffers hold must read while it
// writes, or it is cut off after WriteTimeout.
//
// # RESP
//
// A request whose first byte is '*' is an array of bulk strings, as Redis
// clients send it, of at most MaxArgs strings and MaxArray bytes. Its reply is
// RESP too, and errors are the same bytes in both framings. What is malformed
// ends the connection after one error. Of a request that is not whole up to
// MaxLine bytes stay with the engine and the session keeps the others, so an
// engine need not have room for more than a line.
//
// # The end
//
// At end of input (half-close) everything received is answered, and so is a
// last line without an ending: `printf GET | nc -N host port` prints an ID,
// which is what its user expects, and the worst a request cut short can do is
// to burn IDs. A line that is unfinished when the server stops is not
// answered, and neither is an array that the end of input cuts short.
//
// A bad request takes no ID.
package lineproto
