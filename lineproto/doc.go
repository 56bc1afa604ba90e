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

// The idea: a session is a conversation without its socket, bytes in and bytes out. An engine reads and writes for it:
// an event loop for all plain connections of a listener on Linux, else a goroutine for each connection. So all rules of
// the protocol stand once, and clients cannot tell the engines apart.
//
// The invariant: each request is answered once, in order, by the bytes that it would get alone, wherever the input was
// cut into reads and however many turns the answer took. Nothing that one client does keeps another from its answer:
// no call of a session waits for a client or, in an event loop, for the Backend. Output, input and the IDs of a turn
// are bounded.
//
// Read three types first:
//
//   - session: consume takes requests off the input, and the command table executes them. A request for IDs is an order,
//     which issue answers. A request for a sequence is a seqRequest, which answerSequence answers;
//   - turns: which connection goes next, and how many IDs it may take. An event loop has one for its connections,
//     those with goroutines share one;
//   - Server: owns connections and their deadlines, which one sweep keeps. A listener accepts, and drains at the end.
//
// A request that is not whole stays in the engine's buffer while it is no longer than a line. A longer array moves to
// the session, so an engine needs room for no more than a line.
