package lineproto

import (
	"strconv"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// resp is the framing of RESP. Its value is the version, 2 or 3. The versions differ in
// maps and nulls, which only replies to commands of Redis hold: HELLO, CLIENT, COMMAND,
// CONFIG.
type resp uint8

var (
	resp2 framing = resp(2)
	resp3 framing = resp(3)
)

func (resp) status(out []byte, s string) []byte {
	return append(append(append(out, '+'), s...), "\r\n"...)
}

func (resp) text(out []byte, s string) []byte { return appendBulk(out, s) }
func (resp) bye(out []byte) []byte            { return append(out, "+OK\r\n"...) }

func (resp) pair(out []byte, a, b int64, word string) []byte {
	if word == "" {
		return appendBulkInt(appendBulkInt(appendHeader(out, '*', 2), a), b)
	}
	return appendBulk(appendBulkInt(appendBulkInt(appendHeader(out, '*', 3), a), b), word)
}

// list appends one string. Its lines end in CRLF as those of Redis's INFO, which
// clients split.
func (resp) list(out []byte, lines []string) []byte {
	n := 0
	for _, s := range lines {
		n += len(s) + 2
	}
	out = appendHeader(out, '$', n)
	for _, s := range lines {
		out = linesCRLF.text(out, s)
	}
	return append(out, "\r\n"...)
}

func (r resp) stats(out []byte, stats [][2]string) []byte { return r.list(out, statLines(nil, stats)) }

func statLines(lines []string, stats [][2]string) []string {
	for _, s := range stats {
		lines = append(lines, replies.OneLine(s[0])+":"+replies.OneLine(s[1]))
	}
	return lines
}

func (resp) fail(out []byte, e *ids.ReplyError) []byte { return linesCRLF.fail(out, e) }

func (resp) begin(out []byte, n int) []byte { return appendHeader(out, '*', n) }

func (resp) ids(out []byte, r worker.Run) []byte { return appendRun(out, r, '$', "\r\n") }

func (resp) integers(out []byte, r worker.Run) []byte { return appendRun(out, r, ':', "\r\n") }

func (resp) end(out []byte) []byte { return out }

// null appends the null of the version.
func (r resp) null(out []byte) []byte {
	if r == 3 {
		return append(out, "_\r\n"...)
	}
	return append(out, "$-1\r\n"...)
}

// nullArray appends the null of the version that stands for an array.
func (r resp) nullArray(out []byte) []byte {
	if r == 3 {
		return r.null(out)
	}
	return append(out, "*-1\r\n"...)
}

// beginMap opens a reply of n names and values. In RESP2 it is an array of 2n strings.
func (r resp) beginMap(out []byte, n int) []byte {
	if r == 3 {
		return appendHeader(out, '%', n)
	}
	return appendHeader(out, '*', 2*n)
}

// appendHeader appends the header of a value: its kind and its length n. An integer is
// a header alone, of kind ':'.
func appendHeader(out []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(out, kind), int64(n), 10), "\r\n"...)
}

func appendBulk(out []byte, s string) []byte {
	return append(append(appendHeader(out, '$', len(s)), s...), "\r\n"...)
}

// appendBulkInt appends n, which is not negative, as a bulk string.
func appendBulkInt(out []byte, n int64) []byte {
	const header = "$00\r\n"
	start := len(out)
	out = strconv.AppendInt(append(out, header...), n, 10)
	if digits := len(out) - start - len(header); digits >= 10 {
		out[start+1], out[start+2] = '1', byte('0'+digits-10)
	} else {
		out[start+1] = byte('0' + digits)
		out = append(out[:start+2], out[start+3:]...)
	}
	return append(out, "\r\n"...)
}
