// Package lineproto serves the wire protocol of a node, which docs/protocol.md describes. With it, a program that has a
// node of package flaked serves the node's IDs and named sequences to other programs:
//
//	backend, sequences := embedded.Of(node)
//	server, err := lineproto.New(lineproto.Config{Backend: backend, Sequences: sequences})
//	...
//	err = server.Serve(ctx, listener)
//
// A connection may alternate between plain lines and RESP, as Redis clients send it. A line has at most 512 bytes,
// without its ending. A request in RESP has at most 1,024 strings and 64 KiB. Requests may be pipelined without limit
// and are answered in order. A client that pipelines more than its own and the kernel's buffers hold must read while it
// writes. Otherwise it is disconnected after Config.WriteTimeout.
//
// Connections that ask for many IDs take turns. A request for a sequence that waits for ZooKeeper delays only later
// requests of its own connection.
//
// At end of input (half-close) everything received is answered, even a last line without an ending. So `printf GET |
// nc -N host port` prints an ID, as its user expects. A line or an array that is unfinished when the server
// stops is not answered. A bad request takes no ID.
package lineproto

// The package has four parts. Each can be replaced without the others:
//
//   - a framing takes requests (verb and arguments) off the input and renders replies:
//     plain lines (parse.go, telnet.go, reply.go) and RESP (resp.go, resp_reply.go).
//     One connection may alternate between both;
//   - the command table executes a request against the Backend (commands.go);
//   - a session joins the two. It touches no socket: bytes in, bytes out (session.go,
//     request.go, order.go, sequences.go);
//   - an engine owns the sockets and buffers of a listener (engine.go, listener.go). The
//     server ends connections that are past a deadline (sweep.go). On Linux an
//     event loop serves plain connections (loop_linux.go, looprun_linux.go,
//     loopmail_linux.go, loopend_linux.go). A goroutine serves each other connection
//     (conn.go).
//
// Turns: a connection reserves a slice of its IDs in each turn. turns.go decides which
// connection is next and how many IDs it gets, for an event loop, and for all connections
// with goroutines together.
//
// Named sequences: Config.Sequences never blocks. If a value is not there yet, the session
// asks its engine to wake it, and consume returns needWake. Only that connection waits.
// Requests for other sequences that were pipelined behind wait at the same time (ahead.go).
//
// A malformed array ends the connection after one error. An unfinished array stays in the
// engine's buffer up to maxLine bytes. A longer one moves to the session, so an engine needs
// room for no more than a line.
