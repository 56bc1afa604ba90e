package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal. Text that is written to other is typed, and text that is read
// from other was shown.
type terminal struct {
	t            *testing.T
	screen, keys *os.File // one file, for a command to use
	other        *os.File
}

func newTerminal(t *testing.T) *terminal {
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

// until reads from the screen until text has come.
func (m *terminal) until(text string) {
	m.t.Helper()
	var all []byte
	for buf := make([]byte, 4096); !strings.Contains(string(all), text); {
		k, err := m.other.Read(buf)
		if all = append(all, buf[:k]...); err != nil {
			m.t.Fatalf("%v: %q", err, all)
		}
	}
}

// runs runs a command on the terminal. The channel yields its exit code at the end.
func (m *terminal) runs(ctx context.Context, args ...string) <-chan int {
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"flaked"}, args...), m.keys, m.screen, m.screen) }()
	return code
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
		m := newTerminal(t)
		code := m.runs(t.Context(), "workers", "release", "0")
		m.until("\nType release worker 0 of a to go on: ")
		if _, err := m.other.WriteString(row.typed); err != nil {
			t.Fatal(err)
		}
		m.until(row.says)
		if c := <-code; c != row.code {
			t.Errorf("%q: exit code %d", row.typed, c)
		}
		if released := readSlot(t, store, cl, 0).Released; released != (row.code == exitOK) {
			t.Errorf("%q: released %v", row.typed, released)
		}
	}
}
