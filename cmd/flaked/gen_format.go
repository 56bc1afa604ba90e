package main

import (
	"slices"
	"strconv"
	"strings"
)

// encoding is a way to write an ID. All but decimal have a fixed width and
// digits in the order of ASCII, so that the texts sort as the IDs do.
type encoding struct {
	name   string
	encode func(id int64) string
}

var encodings = []encoding{
	{"decimal", func(id int64) string { return strconv.FormatInt(id, 10) }},
	{"hex", digits("0123456789abcdef", 16)},
	{"base32", digits("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13)}, // Crockford's: no I, L, O, U
	{"base36", digits("0123456789abcdefghijklmnopqrstuvwxyz", 13)},
	{"base58", digits("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 11)}, // Bitcoin's: no 0, I, O, l
	{"base62", digits("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11)},
}

// digits writes a number from 0 on in the base that an alphabet has letters for.
func digits(alphabet string, width int) func(int64) string {
	base := int64(len(alphabet))
	return func(id int64) string {
		text := []byte(strings.Repeat(alphabet[:1], width))
		for i := width - 1; id > 0; i-- {
			text[i], id = alphabet[id%base], id/base
		}
		return string(text)
	}
}

func encodingNames() string {
	var names []string
	for _, e := range encodings {
		names = append(names, e.name)
	}
	return strings.Join(names, ", ")
}

func encodingNamed(name string) (encoding, bool) {
	i := slices.IndexFunc(encodings, func(e encoding) bool { return e.name == name })
	if i < 0 {
		return encoding{}, false
	}
	return encodings[i], true
}
