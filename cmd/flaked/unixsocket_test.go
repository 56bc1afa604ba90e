package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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

func TestUnixSocketIsForOwnerAndGroup(t *testing.T) {
	path := socketPath(t)
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v; want 0660", fi.Mode(), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("closed, and the socket is still there: %v", err)
	}
}

func TestUnixSocketOfAKilledNodeIsReplaced(t *testing.T) {
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()

	// That of one that runs is not.
	if _, err := listenUnix(path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("on a socket in use: %v", err)
	}
}

func TestUnixSocketReplacesNothingElse(t *testing.T) {
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("letters"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("in place of a file: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "letters" {
		t.Errorf("the file now holds %q, %v", text, err)
	}
}
