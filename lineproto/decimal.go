package lineproto

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/flaked/flaked/worker"
)

// appendRun appends each ID of r in decimal, with end, which is at most 8
// bytes less one, after it. Of ten neighbours only the first is formatted; the
// lines of the others differ from it in one byte. That is a quarter of the cost
// of formatting them all, and most of what a pipelined GET costs here.
func appendRun(out []byte, r worker.Run, end string) []byte {
	for i := 0; i < r.Len; {
		start := len(out)
		out = strconv.AppendInt(out, int64(r.At(i)), 10)
		digit := out[len(out)-1]
		out = append(out, end...)
		i++
		if width := len(out) - start; r.Step == 1 && width >= 16 {
			n := min(int('9'-digit), r.Len-i)
			out = appendNext(out, width, 8*(7-len(end)), n)
			i += n
		}
	}
	return out
}

// appendBulkRun is appendRun with each ID as a RESP bulk string.
func appendBulkRun(out []byte, r worker.Run) []byte {
	const end = "\r\n"
	for i := 0; i < r.Len; {
		start := len(out)
		out = appendBulkInt(out, int64(r.At(i)))
		digit := out[len(out)-1-len(end)]
		i++
		if width := len(out) - start; r.Step == 1 && width >= 16 {
			n := min(int('9'-digit), r.Len-i)
			out = appendNext(out, width, 8*(7-len(end)), n)
			i += n
		}
	}
	return out
}

// appendNext repeats the last width bytes of out, 16 to 32, n times, each time
// with the last digit one greater. Its place in the line's last eight bytes,
// read as a little-endian number, is at bit shift. Three words, or four for
// more than 24 bytes, do what a call of copy takes several times as long for.
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
