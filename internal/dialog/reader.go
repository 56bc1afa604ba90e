package dialog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/flaked/flaked/ids"
)

// ErrReply means that the bytes received are not a reply of a flaked node.
var ErrReply = errors.New("reply is not from a flaked node. Check the address")

// ErrLong is an ErrReply: a line that is longer than any that the Reader accepts.
var ErrLong = fmt.Errorf("the line is too long: %w", ErrReply)

// Reader reads the replies on one connection, in the order of the requests. Reading allocates memory only for an error,
// and for a line that is longer than the buffer. All errors are for people.
type Reader struct {
	addr  string
	in    *bufio.Reader
	most  int
	bytes int64
	long  []byte // the last line that was longer than the buffer
}

// maxBuffer is the most bytes of the buffer of a Reader.
const maxBuffer = 16 << 10

// NewReader returns a Reader of a connection to the node at addr, which errors name. A line may have up to most bytes,
// its ending included.
func NewReader(conn io.Reader, addr string, most int) *Reader {
	return &Reader{addr: addr, in: bufio.NewReaderSize(conn, min(most, maxBuffer)), most: most}
}

// Line returns the next line without its ending. It is valid until the next call. With an error, it is the part of the
// line that was received.
func (r *Reader) Line() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) && len(line) < r.most {
		line, err = r.rest(line)
	}
	r.bytes += int64(len(line))
	switch {
	case err == nil:
		return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
	case errors.Is(err, bufio.ErrBufferFull):
		return line, fmt.Errorf("%s: %w", r.addr, ErrLong)
	}
	return line, InWords(r.addr, err)
}

// rest returns a line that has filled the buffer.
func (r *Reader) rest(begin []byte) ([]byte, error) {
	r.long = append(r.long[:0], begin...)
	for {
		more, err := r.in.ReadSlice('\n')
		r.long = append(r.long, more...)
		if len(r.long) > r.most {
			return r.long, bufio.ErrBufferFull
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.long, err
		}
	}
}

// Bytes returns how many bytes the lines had that were read, their endings included.
func (r *Reader) Bytes() int64 { return r.bytes }

// Buffered returns how many bytes have come behind the last line.
func (r *Reader) Buffered() int { return r.in.Buffered() }

// Numbers reads one reply of n lines with a number each, and appends them to all. Each is least or more. If the node
// refuses the request, the error is an *ids.ReplyError, and nothing else of the reply follows.
func Numbers[T ~int64](r *Reader, all []T, n int, least int64) ([]T, error) {
	for i := range n {
		line, err := r.Line()
		if err != nil {
			return all, err
		}
		v, ok := Number(line)
		switch {
		case ok && v >= least:
			all = append(all, T(v))
		case i == 0:
			return all, r.Refusal(line)
		default: // an error replaces the whole reply
			return all, notReply(r.addr, string(line))
		}
	}
	return all, nil
}

// Row appends the n numbers at the begin of a line to all. They are separated by blanks, and none is below the one
// before it. rest is the line after the blank behind them.
func Row[T ~int64](all []T, line []byte, n int) (with []T, rest []byte, ok bool) {
	last := int64(0)
	for rest = line; n > 0; n-- {
		var word []byte
		word, rest, _ = bytes.Cut(rest, []byte{' '})
		v, ok := Number(word)
		if !ok || v < last {
			return all, rest, false
		}
		all, last = append(all, T(v)), v
	}
	return all, rest, true
}

// Number parses a number as nodes write it: 0 to 2^63-1, digits only, without leading zeros.
func Number(word []byte) (n int64, ok bool) {
	if len(word) == 0 || len(word) > 19 || word[0] == '0' && len(word) > 1 {
		return 0, false
	}
	v := uint64(0) // holds 19 digits
	for _, c := range word {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = 10*v + uint64(c-'0')
	}
	return int64(v), v <= math.MaxInt64
}

// Fields returns the fields of a line of the form key=value. It leaves out words without "=".
func Fields(line string) map[string]string {
	fields := make(map[string]string)
	for word := range strings.FieldsSeq(line) {
		if key, value, ok := strings.Cut(word, "="); ok {
			fields[key] = value
		}
	}
	return fields
}

// Refusal returns the error for a line that is not the reply that was asked for: see the function Refusal.
func (r *Reader) Refusal(line []byte) error { return Refusal(r.addr, string(line)) }

// Refusal returns the error for a line that is not the reply that was asked for: an *ids.ReplyError if it is an error
// of the protocol, else an ErrReply.
func Refusal(addr, line string) error {
	if len(line) < 2 || line[0] != '-' {
		return notReply(addr, line)
	}
	code, text, _ := strings.Cut(line[1:], " ")
	return &ids.ReplyError{Addr: addr, Code: ids.Code(code), Text: text}
}

func notReply(addr, line string) error { return fmt.Errorf("%s: %.60q: %w", addr, line, ErrReply) }
