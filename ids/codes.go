package ids

// Code is the class of an error, and the first word of an error reply. It tells a client what to
// do next.
type Code string

const (
	// ERR means a bad request: unknown command, bad count, line too long. Correct the
	// request.
	ERR Code = "ERR"
	// NOAUTH means that the client has not authenticated.
	NOAUTH Code = "NOAUTH"
	// NOTREADY means that the node is starting, stopping, without a durable bound, or
	// without values of a sequence: try another node.
	NOTREADY Code = "NOTREADY"
	// CLOCK means that the clock went back further than a node waits for: try another
	// node, or this one after retry_after_ms.
	CLOCK Code = "CLOCK"
	// FENCED means that this node lost its worker or that its lease expired: try
	// another node.
	FENCED Code = "FENCED"
	// EXHAUSTED means that the layout's time field or a sequence is used up: an operator
	// must act.
	EXHAUSTED Code = "EXHAUSTED"
	// BUSY means that a limit of connections or requests is reached: back off, or try
	// another node.
	BUSY Code = "BUSY"
	// NOPERM means that the client's token does not include the sequence that the request
	// names.
	NOPERM Code = "NOPERM"
	// WRONGPASS means that the client's token was wrong.
	WRONGPASS Code = "WRONGPASS"
	// WRONGNODE means that the node is not the one that the request is for: it belongs to another
	// cluster, or does not own the sequence. Try another node.
	WRONGNODE Code = "WRONGNODE"
	// NOPROTO means that the client asked for a version of RESP that flaked does not speak.
	NOPROTO Code = "NOPROTO"
	// EXECABORT means that EXEC executes nothing, because a request after MULTI was refused.
	EXECABORT Code = "EXECABORT"
)
