package lineproto

import (
	"fmt"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// Limits of a request in RESP: maxArray bytes, and maxArgs strings, the verb included.
const (
	maxArray = 64 << 10
	maxArgs  = 1024
)

// maxKept is the most bytes of an unfinished array that stay in the engine's buffer,
// because the engine reads into it again. A longer array moves to memory of the
// session.
const maxKept = maxLine

// maxHeld is the most bytes of an array that are needed to answer or refuse it:
// maxArray, and the header of a string beyond it.
const maxHeld = maxArray + len("$\r\n") + maxHeader

// maxMemory bounds what the sessions of all connections keep together: see session.memory. It
// is enough for a thousand arrays of the greatest length. The default MaxConns would
// allow ten times as many.
const maxMemory = 64 << 20

// arrayParser takes requests off the input that are RESP arrays of bulk strings. It resumes
// where the input ended, so a request that arrives byte by byte costs no more than one
// that arrives whole.
type arrayParser struct {
	at   int    // bytes of the unfinished request that have been looked at
	left int    // arguments that follow them
	held []byte // the unfinished request, when it is longer than maxKept

	// locked is set until the client has authenticated. Without authentication a client
	// gets no memory, because MaxConns of them could use it up.
	locked bool
}

// unfinished reports whether held has the beginning of a request, which the next input
// continues.
func (a *arrayParser) unfinished() bool { return a.held != nil }

// next takes a request off in and appends its arguments to args. in must begin with
// '*', unless the request is unfinished. The arguments are parts of in or of the memory
// that was held. used is the number of bytes of in that are consumed. If the request is not
// whole, ok is false and there is no error. After an error the rest of the input must
// not be parsed.
func (a *arrayParser) next(in []byte, args [][]byte) (all [][]byte, used int, ok bool, e *ids.ReplyError) {
	had := len(a.held)
	if had > 0 {
		// No request needs more than maxHeld. Input behind the request is not consumed.
		a.hold(in[:min(len(in), maxHeld-had)])
		in = a.held
	}
	all, end, ok, e := a.parse(in, args)
	switch {
	case ok:
		a.at, a.held = 0, nil
		return all, end - had, true, nil
	case e != nil:
		a.at, a.held = 0, nil
		return args, 0, false, e
	case had > 0:
		return args, len(in) - had, false, nil
	case len(in) > maxKept:
		a.hold(in)
		return args, len(in), false, nil
	}
	return args, 0, false, nil
}

func (a *arrayParser) hold(in []byte) {
	if need := len(a.held) + len(in); need > cap(a.held) {
		a.held = append(make([]byte, 0, min(2*need, maxHeld)), a.held...)
	}
	a.held = append(a.held, in...)
}

// parse parses in, which begins with the request, from a.at on. It keeps no args of an
// unfinished request, and parses the request once more when it is whole. So an
// unfinished request needs memory for its bytes only.
func (a *arrayParser) parse(in []byte, args [][]byte) (all [][]byte, end int, ok bool, e *ids.ReplyError) {
	resumed := a.at > 0
	if !resumed {
		n, used, e := header(in, '*')
		switch {
		case e != nil || used == 0:
			return nil, 0, false, e
		case n > maxArgs:
			return nil, 0, false, errManyArgs
		}
		a.at, a.left = used, n
	}
	for ; a.left > 0; a.left-- {
		n, used, e := header(in[a.at:], '$')
		if e != nil || used == 0 {
			return nil, 0, false, e
		}
		from := a.at + used
		to := from + n
		switch {
		case a.locked && to+2 > maxKept:
			return nil, 0, false, errNoAuth
		case to+2 > maxArray:
			return nil, 0, false, errLongArray
		case to+2 > len(in):
			return nil, 0, false, nil
		case in[to] != '\r' || in[to+1] != '\n':
			return nil, 0, false, protocolError("a string longer than announced")
		}
		args = append(args, in[from:to])
		a.at = to + 2
	}
	if resumed {
		a.at = 0
		return a.parse(in, args[:0])
	}
	return args, a.at, true, nil
}

var (
	errManyArgs  = replies.New(ids.ERR, fmt.Sprintf("request of more than %d arguments", maxArgs))
	errLongArray = replies.New(ids.ERR, fmt.Sprintf("request longer than %d bytes", maxArray))
	errMemory    = replies.New(ids.BUSY, fmt.Sprintf(
		"unfinished requests and unread replies use too much memory. Retry later. limit_bytes=%d", maxMemory))
)

// protocolError returns an error that begins like Redis's. Some clients look for these
// words.
func protocolError(what string) *ids.ReplyError { return replies.New(ids.ERR, "Protocol error: "+what) }

// maxHeader is the most digits of a length. No length that is allowed has so many.
const maxHeader = 8

// header parses the line that in begins with: kind and a length. used is the number of
// bytes of the line, 0 if it is not whole. Negative lengths, which stand for null, are
// refused because requests do not need them. Signs and leading zeros are refused too.
func header(in []byte, kind byte) (n, used int, e *ids.ReplyError) {
	if len(in) == 0 {
		return 0, 0, nil
	}
	if in[0] != kind {
		return 0, 0, protocolError(fmt.Sprintf("expected %q, got %+q", kind, in[0]))
	}
	for i, c := range in[1:] {
		switch {
		case isDigit(c) && i < maxHeader && (i == 0 || n > 0):
			n = n*10 + int(c-'0')
			continue
		case c == '\r' && i > 0:
			if len(in) == i+2 {
				return 0, 0, nil
			}
			if in[i+2] == '\n' {
				return n, i + 3, nil
			}
		}
		if kind == '*' {
			return 0, 0, protocolError("invalid multibulk length")
		}
		return 0, 0, protocolError("invalid bulk length")
	}
	return 0, 0, nil
}
