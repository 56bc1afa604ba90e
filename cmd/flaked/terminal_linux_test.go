package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/zkstore"
)

// terminal is a pseudo-terminal. Text that is written to other is typed, and text that is read
// from other was shown.
type terminal struct {
	t            *testing.T
	screen, keys *os.File // one file, for a command to use
	other        *os.File
}

func newTerminal(t *testing.T, rows uint16) *terminal {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { other.Close() })
	fd := int(other.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	return &terminal{t, screen, screen, other}
}

// until reads from the screen until text has come n times, and returns all that it has read.
func (m *terminal) until(text string, n int) string {
	m.t.Helper()
	got, err := discardUntil(m.other, text, n)
	if err != nil {
		m.t.Fatalf("%v: %q", err, got)
	}
	return got
}

// runs runs a command on the terminal. The channel yields its exit code at the end.
func (m *terminal) runs(ctx context.Context, args ...string) <-chan int {
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"flaked"}, args...), m.keys, m.screen, m.screen) }()
	return code
}

// On a terminal --watch redraws in place and stays within the screen.
func TestWatchOnATerminal(t *testing.T) {
	store, cl := newCluster(t)
	for i := range 9 {
		register(t, store, cl, fmt.Sprintf("node-%d", i))
	}
	for _, row := range []struct {
		name, noColor string
		colours       bool
	}{{"in colours", "", true}, {"without", "1", false}} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			t.Setenv("NO_COLOR", row.noColor)
			m := newTerminal(t, 16)
			ctx, cancel := context.WithCancel(t.Context())
			code := m.runs(ctx, "status", "--no-ask", "--watch", "100ms")
			got := m.until("\x1b[H", 3)
			cancel()
			go func() { _, _ = io.Copy(io.Discard, m.other) }()
			if c := <-code; c != exitOK {
				t.Errorf("exit code %d", c)
			}
			first, _, _ := strings.Cut(strings.TrimPrefix(got, "\x1b[H"), "\x1b[H")
			if n := strings.Count(first, "\n"); n != 15 {
				t.Errorf("%d lines on a terminal of 16: %q", n, first)
			}
			for _, want := range []string{"WORKER", " more lines", "9 of 1024 workers held"} {
				if !strings.Contains(first, want) {
					t.Errorf("no %q in %q", want, first)
				}
			}
			if strings.Contains(first, "\x1b[32mlive\x1b[0m") != row.colours || strings.Contains(got, "\x1b[2J") {
				t.Errorf("%q", first)
			}
		})
	}
}

// While pages cannot be read, --watch keeps the last one on the terminal, and says how old it is and
// why.
func TestWatchKeepsTheLastPage(t *testing.T) {
	m := newTerminal(t, 30)
	app := newApp(m.keys, m.screen, m.screen)
	c := cli.NewContext(app, flag.NewFlagSet("status", flag.ContinueOnError), nil)
	began := time.UnixMilli(t0)
	w := watched{c: c, every: 2 * time.Second}
	if err := w.show(recordsPage{Report: exampleReport()}, began); err != nil {
		t.Fatal(err)
	}
	const end = "\x1b[?7h" // of a page
	if got := m.until(end, 1); !strings.Contains(got, "refreshed "+began.UTC().Format(time.TimeOnly)+" UTC, every 2s") {
		t.Errorf("%q", got)
	}
	if err := w.failed(fmt.Errorf("read: %w", zkstore.ErrUnreachable), began.Add(14*time.Second)); err != nil {
		t.Fatal(err)
	}
	got := m.until(end, 1)
	for _, want := range []string{"WORKER", "NOT REFRESHED: the table is 14s old, as of " + began.UTC().Format(time.TimeOnly) + " UTC."} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// Only the exact words confirm.
func TestConfirmedOnATerminal(t *testing.T) {
	store, cl := newCluster(t)
	register(t, store, cl, "a")
	for _, row := range []struct {
		typed, says string
		code        int
	}{
		{"yes\n", "the typed words do not match \"release worker 0 of a\". Nothing was changed.", exitFailure},
		{"\n", "Nothing was changed", exitFailure},
		{"\x04", "Nothing was changed", exitFailure}, // Ctrl-D
		{"release worker 0 of a\n", "worker 0 was released from a", exitOK},
	} {
		m := newTerminal(t, 24)
		code := m.runs(t.Context(), "workers", "release", "0")
		m.until("\nType release worker 0 of a to go on: ", 1)
		if _, err := m.other.WriteString(row.typed); err != nil {
			t.Fatal(err)
		}
		m.until(row.says, 1)
		if c := <-code; c != row.code {
			t.Errorf("%q: exit code %d", row.typed, c)
		}
		if released := readSlot(t, store, cl, 0).Released; released != (row.code == exitOK) {
			t.Errorf("%q: released %v", row.typed, released)
		}
	}
}
