package lineproto

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/flaked/flaked/worker"
)

// thousand has the last three digits of a number, as little-endian bytes.
var thousand = func() (t [1000]uint32) {
	for i := range t {
		t[i] = uint32('0'+i/100) | uint32('0'+i/10%10)<<8 | uint32('0'+i%10)<<16
	}
	return t
}()

// appendRun appends each ID of r in decimal, followed by end, which must not be empty. kind is that of a RESP value:
// '$' for bulk strings, ':' for integers, and 0 for plain lines. Of the IDs that differ in the last three digits only,
// one is formatted. The lines of the others are copies of its line, with other digits. Formatting all of them takes ten
// times as long, and would be most of the cost of a pipelined GET.
func appendRun(out []byte, r worker.Run, kind byte, end string) []byte {
	for i := 0; i < r.Len; {
		start, id := len(out), int64(r.At(i))
		switch kind {
		case '$':
			out = appendBulkInt(out, id)
		case ':':
			out = append(strconv.AppendInt(append(out, ':'), id, 10), end...)
		default:
			out = append(strconv.AppendInt(out, id, 10), end...)
		}
		out, i = appendFollowing(out, r, i, start, end)
	}
	return out
}

// appendFollowing appends the IDs after r.At(i) that differ from it in the last three digits only. out[start:] is the
// line of r.At(i), and ends in end. next is the number of the first ID that is not in out.
func appendFollowing(out []byte, r worker.Run, i, start int, end string) (all []byte, next int) {
	if i++; i == r.Len {
		return out, i
	}
	id, width := int64(r.At(i-1)), len(out)-start
	n := min(int((999-id%1000)/int64(r.Step)), r.Len-i)
	if n == 0 || id < 100 {
		return out, i
	}
	out = slices.Grow(out, n*width)
	lines := out[start : len(out)+n*width]
	for done := width; done < len(lines); done *= 2 { // a few long copies are faster than many short ones
		copy(lines[done:], lines[:done])
	}
	at, step, ending := 2*width-len(end)-3, int(r.Step), uint32(end[0])<<24
	for digits := int(id%1000) + step; at < len(lines); digits += step {
		binary.LittleEndian.PutUint32(lines[at:at+4], ending|thousand[digits])
		at += width
	}
	return out[:len(out)+n*width], i + n
}
