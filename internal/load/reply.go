package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

// parser parses the replies of one connection as they arrive.
type parser struct {
	resp    bool
	batch   int
	command bool // replies are of any kind
	check   bool
	conn    int32
	// got is how many lines of a batch have been read.
	got int
	// left is how many RESP values the current reply still lacks. array is set if they
	// are the IDs of a batch.
	left  int
	array bool
	seq   sequence
}

// taken holds the replies that were found in a read.
type taken struct {
	replies, good int
	stretches     []stretch // appended
	errors        map[string]int64
}

func (t *taken) reply(good bool) {
	t.replies++
	if good {
		t.good++
	}
}

// errReply means that bytes are no reply. The input behind them cannot be parsed.
var errReply = errors.New("received bytes that are not a reply")

// maxValue is the most bytes of a RESP string, and of a line without an end.
const maxValue = 1 << 20

// take parses the whole lines or values of b. It returns how many bytes they have.
func (p *parser) take(b []byte, t *taken) (int, error) {
	if p.resp {
		return p.takeRESP(b, t)
	}
	if !p.check && p.unsuspicious(b) {
		end := bytes.LastIndexByte(b, '\n') + 1
		lines := p.got + bytes.Count(b[:end], newline)
		t.replies += lines / p.batch
		t.good += lines / p.batch
		p.got = lines % p.batch
		return end, nil
	}
	return p.takeLines(b, t)
}

var newline = []byte{'\n'}

// unsuspicious reports whether no line of b can be an error. Such lines are counted
// without being parsed.
func (p *parser) unsuspicious(b []byte) bool {
	if len(b) == 0 || b[0] < '0' || b[0] > '9' || bytes.IndexByte(b, '-') >= 0 {
		return false
	}
	return !p.command || bytes.IndexByte(b, 'E') < 0 && bytes.IndexByte(b, 'N') < 0
}

func (p *parser) takeLines(b []byte, t *taken) (used int, err error) {
	for used < len(b) {
		rest := b[used:]
		if len(rest) > 19 && rest[19] == '\n' && !p.command {
			if id, ok := nineteen(rest); ok {
				used += 20
				p.line(id, t)
				continue
			}
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		if err := p.oddLine(bytes.TrimSuffix(rest[:end], []byte{'\r'}), t); err != nil {
			return used, err
		}
		used += end + 1
	}
	if len(b)-used > maxValue {
		return used, errReply
	}
	return used, nil
}

// line handles an ID in a line.
func (p *parser) line(id int64, t *taken) {
	p.id(id, t)
	if p.got++; p.got == p.batch {
		p.got = 0
		t.reply(true)
	}
}

func (p *parser) id(id int64, t *taken) {
	if p.check {
		t.stretches = p.seq.next(id, p.conn, t.stretches)
	}
}

// oddLine handles every line that is no ID of 19 digits, and every line of another
// server.
func (p *parser) oddLine(line []byte, t *taken) error {
	if p.command {
		code := foreignError(line)
		if code != "" {
			t.errors[code]++
		}
		t.reply(code == "")
		return nil
	}
	if len(line) > 1 && line[0] == '-' && p.got == 0 { // an error replaces the reply
		t.errors[errorCode(line)]++
		t.reply(false)
		return nil
	}
	id, ok := number(line)
	if !ok {
		return errReply
	}
	p.line(id, t)
	return nil
}

// errorCode returns the first word of an error reply, without the dash.
func errorCode(line []byte) string {
	word, _, _ := bytes.Cut(line[1:], []byte{' '})
	if len(word) == 0 || len(word) > 32 {
		return "ERR"
	}
	return string(word)
}

// foreignError returns the code of a line that is an error of another server, in
// memcached's form or in flaked's. It returns "" for any other line.
func foreignError(line []byte) string {
	word, _, _ := bytes.Cut(line, []byte{' '})
	switch string(word) {
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR", "NOT_FOUND":
		return string(word)
	}
	if len(line) > 1 && line[0] == '-' && line[1] >= 'A' && line[1] <= 'Z' {
		return errorCode(line)
	}
	return ""
}

func (p *parser) takeRESP(b []byte, t *taken) (used int, err error) {
	for used < len(b) {
		rest := b[used:]
		if len(rest) > 25 && rest[0] == '$' && rest[1] == '1' && rest[2] == '9' && rest[3] == '\r' && rest[24] == '\r' && !p.command {
			if id, ok := nineteen(rest[5:]); ok && (p.left > 0 || p.batch == 1) {
				used += 26
				p.id(id, t)
				p.ended(t)
				continue
			}
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 2 || rest[end-1] != '\r' {
			if end >= 0 || len(rest) > maxValue {
				return used, errReply
			}
			break
		}
		n, err := p.value(rest, end+1, t)
		if err != nil {
			return used, err
		}
		if n == 0 { // not whole
			break
		}
		used += n
	}
	return used, nil
}

// ended counts a value that is complete.
func (p *parser) ended(t *taken) {
	if p.left = max(p.left-1, 0); p.left == 0 {
		p.array = false
		t.reply(true)
	}
}

// value parses the value whose first line has n bytes, or the head of an array. It
// returns the number of its bytes, 0 if it is not whole.
func (p *parser) value(b []byte, n int, t *taken) (int, error) {
	head := b[1 : n-2]
	switch b[0] {
	case '-':
		if p.left == 0 {
			t.errors[errorCode(b[:n-2])]++
			t.reply(false)
			return n, nil
		}
	case '$', '=', '!':
		size, ok := number(head)
		if string(head) == "-1" {
			break
		}
		if !ok || size > maxValue {
			return 0, errReply
		}
		if int64(len(b)) < int64(n)+size+2 {
			return 0, nil
		}
		head, n = b[n:n+int(size)], n+int(size)+2
	case '*', '~', '>', '%':
		return n, p.elements(b[0], head, t)
	case '+', ':', '_', '#', ',', '(':
	default:
		return 0, errReply
	}
	if !p.command {
		id, ok := number(head)
		if !ok || p.batch > 1 && !p.array {
			return 0, errReply
		}
		p.id(id, t)
	}
	p.ended(t)
	return n, nil
}

func (p *parser) elements(kind byte, head []byte, t *taken) error {
	n, ok := number(head)
	if string(head) == "-1" && p.command {
		n, ok = 0, true
	}
	if kind == '%' {
		n *= 2
	}
	if !ok || n > math.MaxInt32 || !p.command && (kind != '*' || p.left > 0 || int(n) != p.batch || n < 2) {
		return errReply
	}
	p.array = true
	p.left = max(p.left-1, 0) + int(n)
	if p.left == 0 {
		p.array = false
		t.reply(true)
	}
	return nil
}

// number parses decimal digits that fit into 63 bits.
func number(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 19 || b[0] == '+' || b[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// nineteen parses the 19 digits that nearly all IDs have, eight at a time, because
// parsing is most of the cost of a reply.
func nineteen(b []byte) (int64, bool) {
	b = b[:19]
	high, low := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if !eightDigits(high) || !eightDigits(low) {
		return 0, false
	}
	n := eight(high)*100_000_000 + eight(low)
	for _, c := range b[16:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n <= math.MaxInt64
}

func eightDigits(v uint64) bool {
	const high, six = 0xF0F0F0F0F0F0F0F0, 0x0606060606060606
	return v&high == 0x3030303030303030 && (v+six)&high == 0x3030303030303030
}

// eight joins digits to pairs, pairs to fours, and the fours to a number.
func eight(v uint64) uint64 {
	v &= 0x0F0F0F0F0F0F0F0F
	v = v*10 + v>>8
	v = v & 0x00FF00FF00FF00FF
	v = v*100 + v>>16
	v = v & 0x0000FFFF0000FFFF
	return (v*10_000 + v>>32) & 0xFFFFFFFF
}
