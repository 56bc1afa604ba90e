package lineproto

import (
	"strconv"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// framing renders replies. Each method appends one reply, or a part of one, to out.
// Implementations have no state: each request selects the framing of its reply.
type framing interface {
	// status appends a fixed word: OK, PONG.
	status(out []byte, s string) []byte
	// text appends one value that is text.
	text(out []byte, s string) []byte
	// pair appends two numbers, and a word unless it is empty.
	pair(out []byte, a, b int64, word string) []byte
	// list appends a table that a person reads line by line.
	list(out []byte, lines []string) []byte
	// stats appends a table of names and values.
	stats(out []byte, stats [][2]string) []byte
	// bye appends the reply to QUIT.
	bye(out []byte) []byte
	// fail appends an error.
	fail(out []byte, e *ids.ReplyError) []byte
	// begin opens a reply of n IDs, values or lines of text. Calls of ids or text append
	// them.
	begin(out []byte, n int) []byte
	// ids appends the IDs or values of a run, each in the form of a reply to a bare GET.
	ids(out []byte, r worker.Run) []byte
	// integers appends the values of a run, each in the form of a reply to INCR.
	integers(out []byte, r worker.Run) []byte
	// end closes a reply of lines of text.
	end(out []byte) []byte
}

// lines is plain framing. Its value is the line ending.
type lines string

var (
	linesLF   framing = lines("\n")
	linesCRLF framing = lines("\r\n")
)

func (l lines) status(out []byte, s string) []byte { return append(append(out, s...), l...) }
func (l lines) text(out []byte, s string) []byte   { return l.status(out, replies.OneLine(s)) }

func (l lines) pair(out []byte, a, b int64, word string) []byte {
	out = append(strconv.AppendInt(out, a, 10), ' ')
	if out = strconv.AppendInt(out, b, 10); word != "" {
		out = append(append(out, ' '), word...)
	}
	return append(out, l...)
}

func (l lines) list(out []byte, lines []string) []byte {
	for _, s := range lines {
		out = l.text(out, s)
	}
	return l.end(out)
}

func (l lines) stats(out []byte, stats [][2]string) []byte {
	for _, s := range stats {
		out = append(append(out, replies.OneLine(s[0])...), ' ')
		out = l.text(out, s[1])
	}
	return l.end(out)
}

func (l lines) fail(out []byte, e *ids.ReplyError) []byte {
	out = append(append(out, '-'), replies.Codes[resultOf(e)-1].Code...)
	if e.Text != "" {
		out = append(out, ' ')
	}
	return l.text(out, e.Text)
}

func (l lines) bye(out []byte) []byte { return out }

func (l lines) begin(out []byte, _ int) []byte { return out }

func (l lines) ids(out []byte, r worker.Run) []byte { return appendRun(out, r, 0, string(l)) }

func (l lines) integers(out []byte, r worker.Run) []byte { return l.ids(out, r) }

func (l lines) end(out []byte) []byte { return l.status(out, "END") }
