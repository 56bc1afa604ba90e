package words

import (
	"regexp"
	"strings"
)

// internals are the texts of errors of Go and of YAML, and what people call them. The first two stand before the third,
// which matches a part of them.
var internals = []struct {
	text  *regexp.Regexp
	words string
}{
	{regexp.MustCompile(`dial (?:tcp|unix)[46]? (\S+): connect: connection refused`), "connection refused by $1"},
	{regexp.MustCompile(`dial (?:tcp|unix)[46]? (\S+): connect: no such file or directory`), "socket $1 not found"},
	{regexp.MustCompile(`dial (?:tcp|unix)[46]? (\S+): (?:connect: )?`), "connecting to $1: "},
	{regexp.MustCompile(`(?:dial tcp: )?lookup (\S+?)(?: on \S+)?: no such host`), "host $1 not found"},
	{regexp.MustCompile(`(?:read|write) (?:tcp|unix) \S*->(\S+): (?:read: |write: )?`), "connection to $1: "},
	{regexp.MustCompile(`listen (?:tcp|unix)[46]?(?: \S+: bind)?: `), ""},
	{regexp.MustCompile(`open (\S+): no such file or directory`), "file $1 not found"},
	{regexp.MustCompile(`open (\S+): permission denied`), "no permission to open $1"},
	{regexp.MustCompile(`i/o timeout|context deadline exceeded`), "timed out"},
	{regexp.MustCompile(`yaml: unmarshal errors:\n +`), ""},
}

// PlainError returns an error's text in one line, with the texts of internals in plain words.
func PlainError(text string) string {
	for _, i := range internals {
		text = i.text.ReplaceAllString(text, i.words)
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
