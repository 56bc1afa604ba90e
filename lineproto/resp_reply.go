package lineproto

import (
	"strconv"

	"github.com/flaked/flaked/worker"
)

// resp is RESP's framing; its value is the version, 2 or 3. They differ in
// maps and nulls, which Redis' own commands reply with and ours do not.
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

func (resp) pair(out []byte, a, b int64) []byte {
	out = appendHeader(out, '*', 2)
	return appendBulkInt(appendBulkInt(out, a), b)
}

// list is one string. Its lines end as those of Redis' INFO do, which clients split.
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

func (r resp) stats(out []byte, stats []Stat) []byte { return r.list(out, statLines(nil, stats)) }

func statLines(lines []string, stats []Stat) []string {
	for _, s := range stats {
		lines = append(lines, oneLine(s.Name)+":"+oneLine(s.Value))
	}
	return lines
}

func (resp) fail(out []byte, e *Error) []byte { return linesCRLF.fail(out, e) }

func (resp) beginIDs(out []byte, n int) []byte { return appendHeader(out, '*', n) }

func (resp) ids(out []byte, r worker.Run) []byte { return appendBulkRun(out, r) }

// null is the reply that says there is nothing.
func (r resp) null(out []byte) []byte {
	if r == 3 {
		return append(out, "_\r\n"...)
	}
	return append(out, "$-1\r\n"...)
}

// beginMap opens a reply of n names and values: an array of both in RESP2.
func (r resp) beginMap(out []byte, n int) []byte {
	if r == 3 {
		return appendHeader(out, '%', n)
	}
	return appendHeader(out, '*', 2*n)
}

// appendHeader appends a kind of value and its length, or an integer.
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
