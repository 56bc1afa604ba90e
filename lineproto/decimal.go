package lineproto

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/flaked/flaked/worker"
)

// appendRun appends each ID of r in decimal, followed by end, which has at most 7
// bytes. Only the first of consecutive IDs is formatted. The line of each other one is a copy of
// the line before, in which a digit or a few differ. Formatting all of them takes several times as
// long, and would be most of the cost of a pipelined GET.
func appendRun(out []byte, r worker.Run, end string) []byte {
	for i := 0; i < r.Len; {
		start := len(out)
		out = strconv.AppendInt(out, int64(r.At(i)), 10)
		out = append(out, end...)
		out, i = appendFollowing(out, r, i+1, len(out)-start, len(end))
	}
	return out
}

// appendBulkRun appends each ID of r as a RESP bulk string, in the way of appendRun.
func appendBulkRun(out []byte, r worker.Run) []byte {
	for i := 0; i < r.Len; {
		start := len(out)
		out = appendBulkInt(out, int64(r.At(i)))
		out, i = appendFollowing(out, r, i+1, len(out)-start, len("\r\n"))
	}
	return out
}

// appendFollowing appends the IDs of r from r.At(i) on, as long as they follow each other and have as
// many digits as the one before. The line of that one is the last width bytes of out, and ends
// in end bytes that are no digits. next is the number of the first ID that is not in out.
func appendFollowing(out []byte, r worker.Run, i, width, end int) (all []byte, next int) {
	if r.Step != 1 || width < 16 {
		return out, i
	}
	for i < r.Len {
		n := min(int('9'-out[len(out)-1-end]), r.Len-i)
		out = appendNext(out, width, 8*(7-end), n)
		if i += n; i == r.Len || !carries(out[len(out)-width:len(out)-end]) {
			break
		}
		out = append(out, out[len(out)-width:]...)
		carry(out[len(out)-width : len(out)-end])
		i++
	}
	return out, i
}

// carries reports whether the number that line ends in can grow by one without another digit.
func carries(line []byte) bool {
	for k := len(line) - 1; k >= 0 && isDigit(line[k]); k-- {
		if line[k] != '9' {
			return true
		}
	}
	return false
}

// carry adds one to the number that line ends in. carries(line) must be true.
func carry(line []byte) {
	k := len(line) - 1
	for ; line[k] == '9'; k-- {
		line[k] = '0'
	}
	line[k]++
}

// appendNext appends n copies of the last width bytes of out, 16 to 32. Each copy has a
// last digit that is one greater than in the copy before. shift is the bit of that
// digit in the last eight bytes of the line, read as a little-endian number. Three
// stores of eight bytes, or four above 24 bytes, are several times as fast as a call of
// copy.
func appendNext(out []byte, width, shift, n int) []byte {
	line := out[len(out)-width:]
	a := binary.LittleEndian.Uint64(line)
	b := binary.LittleEndian.Uint64(line[8:])
	c := binary.LittleEndian.Uint64(line[width-16:])
	d := binary.LittleEndian.Uint64(line[width-8:])
	end := len(out)
	out = slices.Grow(out, n*width)[:end+n*width]
	to := out[end:]
	if width <= 24 {
		for ; len(to) >= width; to = to[width:] {
			d += 1 << shift
			binary.LittleEndian.PutUint64(to, a)
			binary.LittleEndian.PutUint64(to[8:], b)
			binary.LittleEndian.PutUint64(to[width-8:], d)
		}
		return out
	}
	for ; len(to) >= width; to = to[width:] {
		d += 1 << shift
		binary.LittleEndian.PutUint64(to, a)
		binary.LittleEndian.PutUint64(to[8:], b)
		binary.LittleEndian.PutUint64(to[width-16:], c)
		binary.LittleEndian.PutUint64(to[width-8:], d)
	}
	return out
}
