package worker

import (
	"fmt"
	"strconv"
	"strings"
)

// Encoding is a text form of IDs. All encodings but Decimal have a fixed width, and digits
// in ASCII order. Their texts sort as the IDs do, for example as keys in a store that
// compares bytes.
type Encoding uint8

const (
	Decimal Encoding = iota // nodes answer in it
	Hex                     // 16 digits, lower case
	Base32                  // 13 digits, Crockford's: upper case without I, L, O, U
	Base36                  // 13 digits, lower case
	Base58                  // 11 digits, Bitcoin's: no 0, I, O, l
	Base62                  // 11 digits
)

// alphabet has the name and the digits of an encoding, and how many digits a text has.
type alphabet struct {
	name   string
	digits string
	width  int // 0: not fixed
	// fold replaces a character by the digit that it stands for. nil means that each
	// character stands for itself.
	fold func(byte) byte
}

var alphabets = [...]alphabet{
	Decimal: {name: "decimal", digits: "0123456789"},
	Hex:     {name: "hex", digits: "0123456789abcdef", width: 16, fold: lower},
	Base32:  {name: "base32", digits: "0123456789ABCDEFGHJKMNPQRSTVWXYZ", width: 13, fold: crockford},
	Base36:  {name: "base36", digits: "0123456789abcdefghijklmnopqrstuvwxyz", width: 13, fold: lower},
	Base58:  {name: "base58", digits: "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", width: 11},
	Base62:  {name: "base62", digits: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", width: 11},
}

// String returns the encoding's name.
func (e Encoding) String() string { return alphabets[e].name }

// Encode returns the text of an ID. Negative numbers are not IDs: Encode writes them in
// decimal whatever the encoding is, and Decode refuses them.
func (e Encoding) Encode(id ID) string { return string(e.Append(nil, id)) }

// Append appends the text of an ID to b.
func (e Encoding) Append(b []byte, id ID) []byte {
	a := &alphabets[e]
	if a.width == 0 || id < 0 {
		return strconv.AppendInt(b, int64(id), 10)
	}
	base, start := ID(len(a.digits)), len(b)
	b = append(b, "0000000000000000"[:a.width]...)
	for i := len(b) - 1; i >= start; i-- {
		b[i], id = a.digits[id%base], id/base
	}
	return b
}

// Decode reads an ID from digits of the encoding, at most as many as Encode writes. Leading
// zeros may be missing, because numbers written elsewhere have none. In Decimal leading
// zeros are not allowed. Hex, Base32 and Base36 may be in upper or lower case. Base32 reads
// O as 0, and I and L as 1, as Crockford's does. Numbers above 2^63-1 are refused.
func (e Encoding) Decode(text string) (ID, error) {
	a := &alphabets[e]
	width := a.width
	if width == 0 {
		width = 19
		if len(text) > 1 && text[0] == '0' {
			return 0, fmt.Errorf("%s is not an ID in decimal: it must not begin with a zero", quoted(text))
		}
	}
	if len(text) == 0 || len(text) > width {
		return 0, fmt.Errorf("%s is not an ID in %s: it must have 1 to %d digits", quoted(text), e, width)
	}
	var id uint64
	base := uint64(len(a.digits))
	for i := range len(text) {
		d := a.digit(text[i])
		if d < 0 {
			return 0, fmt.Errorf("%s is not an ID in %s: %q is not a valid digit", quoted(text), e, text[i])
		}
		if id > (1<<63-1-uint64(d))/base {
			return 0, fmt.Errorf("%s is not an ID in %s: it is above 2^63-1", quoted(text), e)
		}
		id = id*base + uint64(d)
	}
	return ID(id), nil
}

// digit returns the value of a character, -1 if it is not a digit.
func (a *alphabet) digit(c byte) int {
	if a.fold != nil {
		c = a.fold(c)
	}
	return strings.IndexByte(a.digits, c)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func crockford(c byte) byte {
	switch c = lower(c); {
	case c == 'o':
		return '0'
	case c == 'i', c == 'l':
		return '1'
	case 'a' <= c && c <= 'z':
		return c - 'a' + 'A'
	}
	return c
}

// quoted quotes a text of any content for a message, cut after 40 characters.
func quoted(text string) string { return fmt.Sprintf("%.40q", text) }
