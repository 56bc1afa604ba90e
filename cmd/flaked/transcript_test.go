package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// transcript runs the commands of a file of testdata, and compares what they print with what the file has. A line of
// the file is
//
//	# a comment
//	$ a command
//	! what happens meanwhile
//
// or a part of a command's output. -args -update writes the output anew.
func transcript(t *testing.T, name string, run func(args []string) result, happens func(event []string)) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
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
			happens(strings.Fields(rest))
		case "$":
			var args []string
			for _, word := range words.FindAllString(rest, -1) {
				args = append(args, strings.Trim(word, "'"))
			}
			got.WriteString(line)
			got.WriteString(printed(args[1:], run(args[1:]))) // after `flaked`
		}
	}
	golden(t, name, got.String())
}

var words = regexp.MustCompile(`'[^']*'|\S+`)

// varying are the parts of an output that differ each time, and what a transcript has instead.
var varying = []struct {
	text    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z \([^)]*\)`), "TIME"},
	{regexp.MustCompile(`until \d{4}-\d\d-\d\dT[\d:.]+Z`), "until TIME"},
	{regexp.MustCompile(`epoch=20\d\d-\d\d-\d\d\.`), "epoch=TODAY."},
	{regexp.MustCompile(`(?m)^(id +)\S+$`), "${1}ID"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+/Test\S*-[A-Z0-9]{8}`), "ZOOKEEPER"},
	{regexp.MustCompile(`127\.0\.0\.1:\d\d+`), "ADDRESS"},
}

// printed returns what a command has printed, and its exit code unless that is 0. In a list, the age differs each time,
// and the width of columns.
func printed(args []string, r result) string {
	out := strings.ReplaceAll(r.stdout+r.stderr, whoami(), "me@here")
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
func TestUsageTranscript(t *testing.T) {
	transcript(t, "usage.txt", func(args []string) result {
		r := call(t, "", args...)
		if strings.Count(r.stderr, "\n") != 1 || r.code != exitUsage || !strings.HasSuffix(r.stderr, " --help`.\n") {
			t.Errorf("%q: want exit code 2, and one line with a hint at the help: %+v", args, r)
		}
		return r
	}, nil)
}
