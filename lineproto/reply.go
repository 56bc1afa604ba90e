package lineproto

import (
	"strconv"
	"strings"

	"github.com/flaked/flaked/worker"
)

// framing renders replies, appending them to out. Its values have no state: a
// request selects the one that answers it.
type framing interface {
	// status is a fixed word: OK, PONG.
	status(out []byte, s string) []byte
	// text is one value that is text.
	text(out []byte, s string) []byte
	// pair is two numbers.
	pair(out []byte, a, b int64) []byte
	// list is a table that a person reads line by line.
	list(out []byte, lines []string) []byte
	// stats is a table of names and values.
	stats(out []byte, stats []Stat) []byte
	// bye is the answer to QUIT.
	bye(out []byte) []byte
	// fail is an error.
	fail(out []byte, e *Error) []byte
	// beginIDs opens a reply of n IDs, which ids then fills.
	beginIDs(out []byte, n int) []byte
	// ids is the IDs of a run, each as the reply to a bare GET is.
	ids(out []byte, r worker.Run) []byte
}

// lines is plain framing; its value is the line ending.
type lines string

var (
	linesLF   framing = lines("\n")
	linesCRLF framing = lines("\r\n")
)

func (l lines) status(out []byte, s string) []byte { return append(append(out, s...), l...) }
func (l lines) text(out []byte, s string) []byte   { return l.status(out, oneLine(s)) }

func (l lines) pair(out []byte, a, b int64) []byte {
	out = strconv.AppendInt(out, a, 10)
	out = append(out, ' ')
	return append(strconv.AppendInt(out, b, 10), l...)
}

func (l lines) list(out []byte, lines []string) []byte {
	for _, s := range lines {
		out = l.text(out, s)
	}
	return l.status(out, "END")
}

func (l lines) stats(out []byte, stats []Stat) []byte {
	for _, s := range stats {
		out = append(append(out, oneLine(s.Name)...), ' ')
		out = l.text(out, s.Value)
	}
	return l.status(out, "END")
}

func (l lines) fail(out []byte, e *Error) []byte {
	out = append(append(out, '-'), e.Code.String()...)
	if e.Text != "" {
		out = append(out, ' ')
	}
	return l.text(out, e.Text)
}

func (l lines) bye(out []byte) []byte { return out }

func (l lines) beginIDs(out []byte, _ int) []byte { return out }

func (l lines) ids(out []byte, r worker.Run) []byte { return appendRun(out, r, string(l)) }

// oneLine keeps what a Backend or a client says from breaking out of its line.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, s)
}
