package faultdisk

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// eventually polls ok every 5 ms until it returns true, and fails the test after 20 s.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// opened returns a file of two blocks on the disk, open for writing like a node's state file.
func opened(t *testing.T, d *Disk) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(d.Dir(), "state"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := save(f); err != nil {
		t.Fatal(err)
	}
	return f
}

// save overwrites the file's two blocks in place and syncs them.
func save(f *os.File) error {
	if _, err := f.WriteAt(make([]byte, 8192), 0); err != nil {
		return err
	}
	return unix.Fdatasync(int(f.Fd()))
}

func TestFill(t *testing.T) {
	t.Parallel()
	d := New(t)
	f := opened(t, d)
	another := filepath.Join(d.Dir(), "another")
	for range 3 {
		d.Fill()
		if err := os.WriteFile(another, []byte("x"), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a new file on a full disk: %v", err)
		}
		if _, err := f.WriteAt([]byte("x"), 1<<20); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a file that grows on a full disk: %v", err)
		}
		if err := save(f); err != nil {
			t.Errorf("a file that does not grow: %v", err)
		}
		d.Free()
		if err := os.WriteFile(another, make([]byte, 1<<20), 0o600); err != nil {
			t.Errorf("after Free: %v", err)
		}
		if err := os.Remove(another); err != nil {
			t.Error(err)
		}
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	d := New(t)
	f := opened(t, d)
	for range 3 {
		d.ReadOnly()
		for range 3 {
			if err := save(f); !errors.Is(err, unix.EIO) {
				t.Errorf("an open file on a disk that is read-only: %v", err)
			}
		}
		if _, err := f.ReadAt(make([]byte, 8192), 0); err != nil {
			t.Errorf("reading: %v", err)
		}
		d.ReadWrite()
		_ = save(f)
		for range 3 {
			if err := save(f); err != nil {
				t.Errorf("after ReadWrite: %v", err)
			}
		}
	}
	f.Close()
	d.ReadOnly()
	if _, err := os.OpenFile(f.Name(), os.O_RDWR, 0); !errors.Is(err, unix.EROFS) {
		t.Errorf("opening on a disk that is read-only: %v", err)
	}
	d.ReadWrite()
	opened(t, d)
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	d := New(t)
	f := opened(t, d)
	for range 3 {
		d.Freeze()
		done := make(chan error, 1)
		go func() { done <- save(f) }()
		select {
		case err := <-done:
			t.Errorf("a frozen disk has synced: %v", err)
			done <- err
		case <-time.After(100 * time.Millisecond):
		}
		d.Thaw()
		if err := <-done; err != nil {
			t.Errorf("after Thaw: %v", err)
		}
	}
}

// The test ends while a process waits for the frozen disk. The cleanup that ends the process
// runs before the disk's own cleanup and waits for the process.
func TestFrozenDiskIsThawedBeforeCleanups(t *testing.T) {
	t.Parallel()
	var d *Disk
	t.Run("within", func(t *testing.T) {
		d = New(t)
		d.Freeze()
		cmd := exec.Command("touch", filepath.Join(d.Dir(), "x"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	})
	if d != nil && mounted(t, d.Dir()) {
		t.Error("the disk is still there")
	}
}

func mounted(t *testing.T, dir string) bool {
	t.Helper()
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(mounts), " "+dir+" ")
}

// waits reports whether a thread of this process is in state D, where it cannot be killed.
func waits() bool {
	threads, _ := filepath.Glob("/proc/self/task/*/stat")
	for _, stat := range threads {
		if b, _ := os.ReadFile(stat); bytes.Contains(b, []byte(") D ")) {
			return true
		}
	}
	return false
}

// helper is the environment variable that makes TestGuardRemovesDiskAfterKill the process to be killed. Its value is
// the fault to make: "frozen" or "read-only".
const helper = "FAULTDISK_TEST_HELPER"

// After kill -9 of the process that made the disk, the guard removes the disk, whether it is
// frozen or read-only.
func TestGuardRemovesDiskAfterKill(t *testing.T) {
	if os.Getenv(helper) != "" {
		d := New(t)
		f := opened(t, d)
		if os.Getenv(helper) == "frozen" {
			d.Freeze()
			go func() { _ = save(f) }()
			eventually(t, "a thread waits for the disk", waits)
		} else {
			d.ReadOnly()
		}
		os.Stdout.WriteString("disk=" + d.Dir() + "\n")
		select {}
	}
	t.Parallel()
	for _, how := range []string{"frozen", "read-only"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			New(t) // skips the test where the helper would be skipped
			cmd := exec.Command(os.Args[0], "-test.run=^TestGuardRemovesDiskAfterKill$", "-test.timeout=1m", "-test.v")
			cmd.Env = append(os.Environ(), helper+"="+how)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			var dir string
			for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
				_, dir, _ = strings.Cut(lines.Text(), "disk=")
			}
			if !mounted(t, dir) {
				t.Fatalf("%q is not mounted", dir)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the disk is gone", func() bool {
				_, err := os.Stat(filepath.Dir(dir))
				return !mounted(t, dir) && errors.Is(err, os.ErrNotExist)
			})
		})
	}
}

// The kernel reports lost data to the next sync, which is the sync of the freeze here. Freeze
// must succeed nevertheless.
func TestFreezeAfterReadOnly(t *testing.T) {
	t.Parallel()
	d := New(t)
	f := opened(t, d)
	for range 3 {
		d.ReadOnly()
		_ = save(f)
		if err := os.WriteFile(filepath.Join(d.Dir(), "another"), []byte("lost"), 0o600); err != nil {
			t.Log(err)
		}
		_ = command("sync", "--file-system", d.Dir())
		d.ReadWrite()
		d.Freeze()
		d.Thaw()
	}
}
