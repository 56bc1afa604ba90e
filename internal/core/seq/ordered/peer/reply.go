package peer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/ops/access"
)

// errReply means that the bytes received are not replies of a flaked node.
var errReply = errors.New("the reply is not from a flaked node. Check the address")

// read gives the replies to the calls, until the connection ends.
func (l *link) read(in *bufio.Reader) error {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return access.InWords(l.address, err)
		}
		if err := l.answer(line); err != nil {
			return err
		}
	}
}

// answer gives a line to the call that has waited longest. It returns an error if the line is not its reply.
func (l *link) answer(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 {
		return notReply(l.address, line)
	}
	k := l.sent[0]
	got, err := k.parse(l.address, line)
	if errors.Is(err, errReply) {
		return err
	}
	l.sent[0] = nil
	l.sent = l.sent[1:]
	k.end(got, err)
	if l.quiet = 0; l.stalled {
		l.stalled = false
		l.notify()
	}
	return nil
}

// parse returns the answer in a reply, or the error that it is: an *ids.ReplyError if the node refuses the request, and
// a ordered.ErrNotAsked if it refuses this node or does not understand it.
func (k *call) parse(address string, line []byte) (got ordered.Answer, err error) {
	line = bytes.TrimRight(line, "\r\n")
	a, rest, _ := bytes.Cut(line, []byte(" "))
	b, owner, _ := bytes.Cut(rest, []byte(" "))
	first, err := strconv.ParseInt(string(a), 10, 64)
	last, wrong := strconv.ParseInt(string(b), 10, 64)
	if err == nil && wrong == nil && first >= 0 && last >= first && last-first >= k.N-1 && (k.N > 1 || last == first) &&
		len(owner) > 0 {
		return ordered.Answer{First: first, Owner: k.nonce(owner)}, nil
	}
	err = reply(address, line)
	e, ok := errors.AsType[*ids.ReplyError](err)
	if ok && (e.Code == ids.NOPERM || e.Reason() == "" && e.Code != ids.NOTREADY) {
		return got, notAsked(e)
	}
	return got, err
}

// nonce returns the owner that a reply names. Mostly it is the one that was asked.
func (k *call) nonce(owner []byte) string {
	if string(owner) == k.Of.Owner {
		return k.Of.Owner
	}
	return string(owner)
}

// reply returns the *ids.ReplyError in a line that is not a good reply, or an errReply.
func reply(address string, line []byte) error {
	if line = bytes.TrimRight(line, "\r\n"); len(line) > 1 && line[0] == '-' {
		return replies.Parse(address, string(line))
	}
	return notReply(address, line)
}

func notReply(address string, line []byte) error {
	return fmt.Errorf("%s: %.60q: %w", address, line, errReply)
}
