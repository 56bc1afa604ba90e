package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/flaked/flaked/internal/testkit/faultnet"
)

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sock") // t.TempDir may be too long for a socket's address
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

var closedToOthers = unixOptions{mode: 0o660, gid: -1}

func TestUnixOptions(t *testing.T) {
	for _, row := range []struct {
		mode, group string
		want        unixOptions
	}{
		{"0660", "", unixOptions{0o660, -1}},
		{"600", "", unixOptions{0o600, -1}},
		{"0777", "0", unixOptions{0o777, 0}},
		{"0660", "root", unixOptions{0o660, 0}},
		{"0660", "54321", unixOptions{0o660, 54321}},
	} {
		if got, err := parseUnixOptions(row.mode, row.group); err != nil || got != row.want {
			t.Errorf("%q %q: %+v, %v", row.mode, row.group, got, err)
		}
	}
}

func TestUnixSocketOfAGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give a file to any group")
	}
	path := socketPath(t)
	l, err := listenUnix(path, unixOptions{mode: 0o620, gid: 54321})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := fi.Sys().(*syscall.Stat_t); st.Gid != 54321 || fi.Mode().Perm() != 0o620 {
		t.Errorf("group %d, mode %v", st.Gid, fi.Mode())
	}
}

// Nobody can connect before the group and the mode are set.
func TestUnixSocketAdmitsNobodyBeforeItsMode(t *testing.T) {
	path := socketPath(t)
	before := syscall.Umask(0o022)
	defer syscall.Umask(before)
	l, err := bindClosed(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0 {
		t.Errorf("mode %v, %v; want none", fi.Mode(), err)
	}
	if got := syscall.Umask(0o022); got != 0o022 {
		t.Errorf("it left the umask at %#o", got)
	}
}

func TestUnixSocketOfAKilledNodeIsReplaced(t *testing.T) {
	path := socketPath(t)
	if err := faultnet.LeaveSocket(path); err != nil {
		t.Fatal(err)
	}
	l, err := listenUnix(path, closedToOthers)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()

	// Neither the socket of a running node is replaced nor a file.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, file} {
		if _, err := listenUnix(path, closedToOthers); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("in place of %s: %v", path, err)
		}
	}
}

// A socket that a cleaner of /tmp removed is made again, with its mode. Nothing that another process put
// there is replaced or removed.
func TestRemovedUnixSocketIsMadeAgain(t *testing.T) {
	path := socketPath(t)
	l, err := newUnixListener(path, closedToOthers)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan error)
	go func() {
		for {
			conn, err := l.Accept()
			if err == nil {
				conn.Close()
			}
			accepted <- err
			if err != nil {
				return
			}
		}
	}()
	dial := func() {
		t.Helper()
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := <-accepted; err != nil {
			t.Fatal(err)
		}
	}
	renew := func(want bool) {
		t.Helper()
		if renewed, err := l.(*unixListener).renew(); renewed != want || err != nil {
			t.Fatalf("renewed %t, %v", renewed, err)
		}
	}
	renew(false)
	dial()
	for range 2 {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		renew(true)
		dial()
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != closedToOthers.mode {
			t.Errorf("%v, %v", fi, err)
		}
	}

	os.Remove(path)
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if renewed, err := l.(*unixListener).renew(); renewed || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("over another's: %t, %v", renewed, err)
	}
	l.Close()
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("Close removed the socket of another: %v", err)
	}
	other.Close()
	renew(false) // closed
}
