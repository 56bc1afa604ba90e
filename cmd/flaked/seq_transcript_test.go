package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

// TestSeqTranscript runs the commands of testdata/seq.txt, and compares what they print with what the file has. A line
// of the file is
//
//	# a comment
//	$ a command
//	! what happens meanwhile: see happens
//
// or a part of a command's output. -args -update writes the output anew.
func TestSeqTranscript(t *testing.T) {
	text, err := os.ReadFile("testdata/seq.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := newSeqWorld(t)
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
			w = w.happens(strings.Fields(rest))
		case "$":
			got.WriteString(line)
			got.WriteString(w.printed(rest))
		}
	}
	golden(t, "seq.txt", got.String())
}

// happens makes an event happen, and returns the world in which the transcript goes on.
func (w *seqWorld) happens(event []string) *seqWorld {
	w.t.Helper()
	remove := func(path string) {
		if err := w.store.Delete(w.t.Context(), path, store.AnyVersion); err != nil {
			w.t.Fatal(err)
		}
	}
	switch strings.Join(event[:min(2, len(event))], " ") {
	case "another cluster":
		return newSeqWorld(w.t)
	case "ZooKeeper loses": // data
		w.losesData()
	case "no node": // has served sequences
		remove("/seq")
	case "no cluster":
		remove("/cluster")
	default: // nodes take NAME below VALUE
		next, err := strconv.ParseInt(event[4], 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		w.taken(event[2], next)
	}
	return w
}

var (
	words   = regexp.MustCompile(`'[^']*'|\S+`)
	varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z \([^)]*\)|(?m)^id +\S+$`)
)

// printed returns what a command prints, and its exit code unless that is 0. It replaces what differs each time. In a
// list, that is the age, and the width of columns.
func (w *seqWorld) printed(command string) string {
	var args []string
	for _, word := range words.FindAllString(command, -1) {
		args = append(args, strings.Trim(word, "'"))
	}
	r := w.call(args[2:]...) // after `flaked seq`
	out := varying.ReplaceAllStringFunc(r.stdout+r.stderr, func(text string) string {
		if strings.HasPrefix(text, "id") {
			return "id                     ID"
		}
		return "TIME"
	})
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(out, whoami(), "me@here")) {
		if cells := strings.Fields(line); args[2] == "list" && r.code == exitOK && len(cells) > 3 {
			cells[len(cells)-2] = "AGE"
			line = strings.Join(cells, "  ") + "\n"
		}
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if r.code != exitOK {
		b.WriteString("exit code " + strconv.Itoa(r.code) + "\n")
	}
	return b.String()
}
