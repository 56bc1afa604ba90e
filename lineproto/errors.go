package lineproto

import "errors"

// Code is the class of an error and the first word of its reply. It tells a client what
// to do next.
type Code uint8

const (
	// ERR means a bad request: unknown command, bad count, line too long. Correct the
	// request.
	ERR Code = iota
	// NOAUTH means that the client has not authenticated.
	NOAUTH
	// NOTREADY means that the node is starting, stopping, without a durable bound, or
	// without values of a sequence: try another node.
	NOTREADY
	// CLOCK means that the clock went back further than a node waits for: try another
	// node, or this one after retry_after_ms.
	CLOCK
	// FENCED means that this node lost its worker or that its lease expired: try
	// another node.
	FENCED
	// EXHAUSTED means that the layout's time field or a sequence is used up: an operator
	// must act.
	EXHAUSTED
	// BUSY means that a limit of connections or requests is reached: back off, or try
	// another node.
	BUSY
	// NOPERM means that the client's token does not include the sequence that the request
	// names.
	NOPERM
	// WRONGPASS means that the client's token was wrong.
	WRONGPASS
	// NOPROTO means that the client asked for a version of RESP that flaked does not speak.
	NOPROTO
	// EXECABORT means that EXEC executes nothing, because a request after MULTI was refused.
	EXECABORT

	numCodes = iota
)

var codeNames = [numCodes]string{"ERR", "NOAUTH", "NOTREADY", "CLOCK", "FENCED", "EXHAUSTED", "BUSY", "NOPERM", "WRONGPASS", "NOPROTO", "EXECABORT"}

// String returns the code as it is sent, without the dash. For a value that is none of
// the constants it returns "ERR".
func (c Code) String() string { return codeNames[c.known()] }

func (c Code) known() Code {
	if int(c) >= numCodes {
		return ERR
	}
	return c
}

// Error is an error reply: one line, "-CODE text". Text may carry numbers as key=value.
// Line breaks in it are sent as blanks.
type Error struct {
	Code Code
	Text string
}

// Error returns the reply without its line ending.
func (e *Error) Error() string {
	if e.Text == "" {
		return "-" + e.Code.String()
	}
	return "-" + e.Code.String() + " " + e.Text
}

// asError turns an error of a Backend into a reply. An error without a code becomes
// NOTREADY: a client then asks another node, which is right for every failure inside
// this one.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{NOTREADY, err.Error()}
}
