package lineproto

import "errors"

// Code is the class of an error, the first word of its reply; it tells a
// client what to do next.
type Code uint8

const (
	// ERR is a bad request: unknown command, bad count, line too long. Mend it.
	ERR Code = iota
	// NOAUTH means authenticate first, or the token was wrong.
	NOAUTH
	// NOTREADY means starting, stopping, or without a durable bound: try another node.
	NOTREADY
	// CLOCK means the clock went back beyond what the rule waits for: try
	// another node, or this one after retry_after_ms.
	CLOCK
	// FENCED means this node lost its worker or its lease ran out: try another node.
	FENCED
	// EXHAUSTED means the layout's time field is used up: a person has to act.
	EXHAUSTED
	// BUSY is a connection or request limit: back off, or try another node.
	BUSY

	numCodes = iota
)

var codeNames = [numCodes]string{"ERR", "NOAUTH", "NOTREADY", "CLOCK", "FENCED", "EXHAUSTED", "BUSY"}

// String is the code as it is sent, without the dash. A value that is none of
// the constants counts as ERR.
func (c Code) String() string { return codeNames[c.known()] }

func (c Code) known() Code {
	if int(c) >= numCodes {
		return ERR
	}
	return c
}

// Error is an error reply: one line, "-CODE text". Text may carry numbers as
// key=value; line breaks in it are sent as blanks.
type Error struct {
	Code Code
	Text string
}

// Error is the reply without its line ending.
func (e *Error) Error() string {
	if e.Text == "" {
		return "-" + e.Code.String()
	}
	return "-" + e.Code.String() + " " + e.Text
}

// asError turns what a Backend returned into a reply. An error without a code
// is NOTREADY: a client then asks another node, which is right for whatever
// went wrong inside this one.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{NOTREADY, err.Error()}
}
