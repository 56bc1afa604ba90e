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

// appendRun appends each ID of r in decimal, followed by end, which has at most 5 bytes. kind is that of a RESP value:
// '$' for bulk strings, ':' for integers, and 0 for plain lines. Of the IDs that differ in the last three digits only,
// one is formatted, and the lines of the others are copies of its line. Formatting all of them takes ten times as long,
// and would be most of the cost of a pipelined GET.
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
	tail := width - len(end) - 3 // where the last three digits are
	n := min(int((999-id%1000)/int64(r.Step)), r.Len-i)
	if n == 0 || id < 100 || tail > stride-8 {
		return out, i
	}
	out = slices.Grow(out, n*width+stride)
	var ending [8]byte
	copy(ending[3:], end)
	fillLines(out[start:len(out)+n*width+stride], width, tail, int(id%1000), int(r.Step),
		binary.LittleEndian.Uint64(ending[:]))
	return out[:len(out)+n*width], i + n
}

// stride is the most bytes that fillLines writes at once.
const stride = 32

// fillLines copies the first width bytes of to until stride bytes are left. The last three digits of a copy, at tail,
// are step greater than those of the copy before. Behind them comes ending. A few stores of eight bytes are several
// times as fast as a call of copy. They write behind a line what the next line replaces.
func fillLines(to []byte, width, tail, digits, step int, ending uint64) {
	a, b, c := binary.LittleEndian.Uint64(to), binary.LittleEndian.Uint64(to[8:]), binary.LittleEndian.Uint64(to[16:])
	if tail <= 16 { // c would be a fourth of the stores
		for i := width; i+stride < len(to); i += width {
			digits += step
			line := (*[stride]byte)(to[i : i+stride])
			binary.LittleEndian.PutUint64(line[:], a)
			binary.LittleEndian.PutUint64(line[8:], b)
			binary.LittleEndian.PutUint64(line[tail:], ending|uint64(thousand[digits]))
		}
		return
	}
	for i := width; i+stride < len(to); i += width {
		digits += step
		line := (*[stride]byte)(to[i : i+stride])
		binary.LittleEndian.PutUint64(line[:], a)
		binary.LittleEndian.PutUint64(line[8:], b)
		binary.LittleEndian.PutUint64(line[16:], c)
		binary.LittleEndian.PutUint64(line[tail:], ending|uint64(thousand[digits]))
	}
}
