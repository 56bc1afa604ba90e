package main

import (
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/flaked/flaked/internal/ops/host/systemd"
)

// Priorities of the journal, as in sd-daemon(3): a line of the log begins with one.
const (
	journalError   = "<3>"
	journalWarning = "<4>"
	journalInfo    = "<6>"
	journalDebug   = "<7>"
)

// toJournal reports whether w is this process's stderr and systemd's journal reads it.
func toJournal(w io.Writer) bool { return w == io.Writer(os.Stderr) && systemd.StderrIsJournal() }

// journalWriter writes hclog's lines of text with the priority that their level has in the journal.
type journalWriter struct{ w io.Writer }

func (j journalWriter) Write(line []byte) (int, error) {
	_, err := io.WriteString(j.w, withPriority(journalPriority(line), string(line)))
	return len(line), err
}

// journalPriority returns the priority of a line that begins with hclog's level.
func journalPriority(line []byte) string {
	switch {
	case bytes.HasPrefix(line, []byte("[ERROR]")):
		return journalError
	case bytes.HasPrefix(line, []byte("[WARN]")):
		return journalWarning
	case bytes.HasPrefix(line, []byte("[DEBUG]")), bytes.HasPrefix(line, []byte("[TRACE]")):
		return journalDebug
	}
	return journalInfo
}

// withPriority returns text with the priority at the beginning of each line: the journal
// makes an entry of each.
func withPriority(priority, text string) string {
	body, end := strings.CutSuffix(text, "\n")
	body = priority + strings.ReplaceAll(body, "\n", "\n"+priority)
	if end {
		body += "\n"
	}
	return body
}
