package lineproto

import (
	"strconv"
	"strings"
)

// maxLine is the most bytes a plain request may have, not counting its ending
// and any telnet negotiation in it.
const maxLine = 512

// maxTag is the most bytes of a tag.
const maxTag = 64

// verdict is the result of looking for a line.
type verdict uint8

const (
	lineMore    verdict = iota // the line is not finished
	lineOK                     // a line
	lineArray                  // a RESP array, no line
	lineTooLong                // more than maxLine bytes
	lineNUL                    // a NUL byte, which text never holds
)

// lineParser finds lines in the input of one connection.
type lineParser struct {
	scanned int // bytes of the unfinished line that have been looked at
	tel     telnet
	crlf    bool   // how the last line ended
	marks   uint16 // timing marks that the client has asked for and not got
}

// next takes the next line off in. It returns the line without its ending (all of in, if there is a NUL), and how many
// bytes of in are consumed, which may be some even without a line. The next call must
// get in from there on, with or without more input behind it. next moves bytes within
// in, to close the gaps that telnet negotiation leaves.
func (p *lineParser) next(in []byte, eof bool) (line []byte, used int, v verdict) {
	i := p.scanned
	for i < len(in) {
		c := in[i]
		switch {
		case p.tel != telNone || c == telIAC:
			n, mark := p.tel.skip(in[i:])
			if mark {
				p.marks++
			}
			// The part before the gap moves, as it is short. The part behind may be
			// long.
			copy(in[n:], in[:i])
			in, used = in[n:], used+n
			continue
		case c == '*' && i == 0:
			return nil, used, lineArray
		case c == '\n':
			p.scanned = 0
			line, p.crlf = cutCR(in[:i])
			return line, used + i + 1, lineOK
		case c == 0 && i == 0 && !eof && len(in) < len(proxyV2End) && string(in) == proxyV2End[:len(in)]:
			return nil, used, lineMore
		case c == 0:
			return in, used, lineNUL
		case i > maxLine || i == maxLine && c != '\r': // a CR may be the ending's
			return in[:i], used, lineTooLong
		}
		i++
	}
	p.scanned = i
	if !eof || i == 0 {
		return nil, used, lineMore
	}
	p.scanned = 0
	line, p.crlf = cutCR(in[:i])
	return line, used + i, lineOK
}

// framing returns the framing of a reply to the last line, which mirrors its ending.
func (p *lineParser) framing() framing {
	if p.crlf {
		return linesCRLF
	}
	return linesLF
}

func cutCR(b []byte) (line []byte, cr bool) {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return b[:n-1], true
	}
	return b, false
}

// cutWord splits the first word off line. The rest begins with its next word.
func cutWord(line []byte) (word, rest []byte) {
	line = trimBlanks(line)
	for i, c := range line {
		if isBlank(c) {
			return line[:i], trimBlanks(line[i:])
		}
	}
	return line, nil
}

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isBlank(c byte) bool  { return c == ' ' || c == '\t' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// number parses a count or an ID, 1 to 2^63-1. Only digits are accepted: "+5", "007",
// "1e3" and "1.5" are refused, so that one number has one spelling.
func number(b []byte) (n int64, ok bool) {
	if len(b) == 0 || b[0] < '1' || b[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// isTag reports whether b may label a GET: a letter, then letters, digits and
// _ . : -, at most 64 bytes.
func isTag(b []byte) bool {
	if len(b) == 0 || len(b) > maxTag || !isLetter(b[0]) {
		return false
	}
	for _, c := range b {
		if !inTag[c] {
			return false
		}
	}
	return true
}

// inTag has the bytes that a tag may hold. Comparing with them one by one would be most of the cost of a pipelined GET
// with a tag.
var inTag = func() (t [256]bool) {
	for c := range t {
		t[c] = isLetter(byte(c)) || isDigit(byte(c)) || strings.IndexByte("_.:-", byte(c)) >= 0
	}
	return t
}()

// equalFold reports whether two ASCII strings are equal, ignoring case. Letters of want
// must be upper case.
func equalFold(got []byte, want string) bool {
	if len(got) != len(want) {
		return false
	}
	for i, c := range got {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}
