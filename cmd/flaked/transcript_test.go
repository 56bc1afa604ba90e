package main

import (
	"cmp"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// transcript runs the commands of a file of testdata in an empty directory, and compares what they print with what the
// file has. A line of the file is
//
//	# a comment
//	$ a command
//	! what happens meanwhile
//
// or a part of a command's output. -args -update writes the output anew. In all transcripts these can happen:
//
//	! file NAME has "TEXT"
//	! standard input has "TEXT"
//	! FLAKED_NAME=VALUE
//
// happens makes all else happen. names has words that stand for others in commands and in their output: an address.
func transcript(t *testing.T, name string, names map[string]string, happens func(event string)) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var got strings.Builder
	stdin := ""
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "#":
			if got.Len() > 0 {
				got.WriteString("\n")
			}
			got.WriteString(line)
		case "!":
			got.WriteString(line)
			if file, has, ok := cut(rest, "file ", " has "); ok {
				certtest.Write(t, ".", file, []byte(unquoted(t, has)))
			} else if _, has, ok := cut(rest, "standard input", " has "); ok {
				stdin = unquoted(t, has)
			} else if variable, value, ok := cut(rest, "FLAKED_", "="); ok {
				t.Setenv("FLAKED_"+variable, value)
			} else {
				happens(rest)
			}
		case "$":
			var args []string
			for _, word := range shellWord.FindAllString(rest, -1)[1:] { // after `flaked`
				word = strings.Trim(word, "'")
				args = append(args, cmp.Or(names[word], word))
			}
			got.WriteString(line)
			got.WriteString(printed(args, call(t, stdin, args...), names))
			stdin = ""
		}
	}
	golden(t, name, got.String())
}

// cut returns what is before and behind a separator in a text that begins with prefix.
func cut(text, prefix, sep string) (before, after string, ok bool) {
	if text, ok = strings.CutPrefix(text, prefix); ok {
		before, after, ok = strings.Cut(text, sep)
	}
	return before, after, ok
}

func unquoted(t *testing.T, text string) string {
	t.Helper()
	text, err := strconv.Unquote(text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var shellWord = regexp.MustCompile(`'[^']*'|\S+`)

// varying are the parts of an output that differ each time, and what a transcript has instead.
var varying = []struct {
	text    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z \([^)]*\)`), "TIME"},
	{regexp.MustCompile(`until \d{4}-\d\d-\d\dT[\d:.]+Z`), "until TIME"},
	{regexp.MustCompile(`current time \S+ is after [^ .]+`), "current time TIME is after TIME"},
	{regexp.MustCompile(`"(\w+_ms)": "?\d{13}"?`), `"$1": TIME`},
	{regexp.MustCompile(`"id": "[0-9a-f]{8,}"`), `"id": "ID"`},
	{regexp.MustCompile(`"@timestamp":"[^"]*"`), `"@timestamp":"TIME"`},
	{regexp.MustCompile(`(?m)^20\S+( \[\w+\])`), "TIME$1"},
	{regexp.MustCompile(`epoch=20\d\d-\d\d-\d\d\.`), "epoch=TODAY."},
	{regexp.MustCompile(`(?m)^(id +)\S+$`), "${1}ID"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+/Test\S*-[A-Z0-9]{8}`), "ZOOKEEPER"},
	{regexp.MustCompile(`127\.0\.0\.1:\d\d+`), "ADDRESS"},
}

// printed returns what a command has printed, and its exit code unless that is 0. In a list, the age differs each time,
// and the width of columns.
func printed(args []string, r result, names map[string]string) string {
	out := strings.ReplaceAll(r.stdout+r.stderr, whoami(), "me@here")
	for name, stands := range names {
		out = strings.ReplaceAll(out, stands, name)
	}
	if dir, err := os.Getwd(); err == nil {
		out = strings.ReplaceAll(out, dir, "DIR")
	}
	for _, v := range varying {
		out = v.text.ReplaceAllString(out, v.instead)
	}
	var b strings.Builder
	for line := range strings.Lines(out) {
		if cells := strings.Fields(line); len(args) > 1 && args[1] == "list" && r.code == exitOK && len(cells) > 3 {
			cells[len(cells)-2] = "AGE"
			line = strings.Join(cells, "  ")
		}
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if r.code != exitOK {
		b.WriteString("exit code " + strconv.Itoa(r.code) + "\n")
	}
	return b.String()
}

// The command line, the environment or the file is wrong.
func TestUsageTranscript(t *testing.T) { transcript(t, "usage.txt", nil, nil) }

func TestConfigTranscript(t *testing.T) { transcript(t, "config.txt", nil, nil) }

func TestDecodeTranscript(t *testing.T) { transcript(t, "decode.txt", nil, nil) }
