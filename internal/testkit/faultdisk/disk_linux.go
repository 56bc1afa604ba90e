package faultdisk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Disk is a mounted filesystem. Its methods may be called by any goroutine, also by one that
// does not run the test. A method that fails reports it with Errorf and returns.
type Disk struct {
	t     testing.TB
	base  string // the directory of the two below
	dir   string // the mount point
	image string // the file with the filesystem

	mu        sync.Mutex // guards the fields below; held while a fault begins or ends
	frozen    bool
	remounted bool // mounted read-only
	immutable bool // the image is immutable
}

// size is the size of the filesystem, 8 MiB. A node's state takes two blocks.
const size = 8 << 20

// New returns a disk that exists until the test ends. It skips the test if no disk can be made.
func New(t testing.TB) *Disk {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "faultdisk-")
	if err != nil {
		t.Skipf("faultdisk: %v", err)
	}
	d := &Disk{t: t, base: base, dir: filepath.Join(base, "disk"), image: filepath.Join(base, "image")}
	release, err := d.guard()
	if err != nil {
		os.Remove(base)
		t.Skipf("faultdisk: %v", err)
	}
	t.Cleanup(func() {
		d.Thaw()
		d.ReadWrite()
		release()
	})
	// The context ends before any cleanup runs. In a cleanup Thaw could be too late: another
	// cleanup may run first and wait for a process that waits for the disk.
	context.AfterFunc(t.Context(), d.Thaw)
	if err := d.make(); err != nil {
		t.Skipf("faultdisk: there is no disk to be had here: %v", err)
	}
	return d
}

// make creates the filesystem, mounts it, and checks that its writes can be made to fail.
func (d *Disk) make() error {
	if os.Geteuid() != 0 {
		return errors.New("only root may mount one")
	}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return err
	}
	image, err := os.Create(d.image)
	if err != nil {
		return err
	}
	defer image.Close()
	if err := image.Truncate(size); err != nil {
		return err
	}
	// There is no journal, for the reason in the package comment, and because a journal
	// would take a third of the space. No blocks are reserved for root, and the kernel has
	// no tables to initialise in the background.
	if err := command("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-N", "256",
		"-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=0,nodiscard", d.image); err != nil {
		return err
	}
	if err := command("mount", "-t", "ext4", "-o", "loop,noatime,errors=continue", d.image, d.dir); err != nil {
		return err
	}
	return d.probe()
}

// probe returns an error unless writes fail while the image is immutable. Some filesystems
// accept the flag for the image and still write to it while it is open.
func (d *Disk) probe() error {
	f, err := os.Create(filepath.Join(d.dir, "probe"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	write := func() error {
		_, err := f.WriteAt([]byte("x"), 0)
		return errors.Join(err, f.Sync())
	}
	if err := write(); err != nil {
		return err
	}
	if err := command("chattr", "+i", d.image); err != nil {
		return err
	}
	failed := write()
	if err := command("chattr", "-i", d.image); err != nil {
		return err
	}
	if failed == nil {
		return errors.New("its writes cannot be made to fail")
	}
	return nil
}

// Dir returns the mount point.
func (d *Disk) Dir() string { return d.dir }

// filler returns the path of the file that Fill creates.
func (d *Disk) filler() string { return filepath.Join(d.dir, "filler") }

// Fill takes all free blocks. A write that needs a new block then fails with ENOSPC. Writes to
// blocks that a file has already still succeed.
func (d *Disk) Fill() { d.t.Helper(); d.one("fill", d.fill) }

func (d *Disk) fill() error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	// The blocks are allocated and not written. Delayed allocation reserves more blocks for
	// written data than the data needs, and frees the rest later. The size halves down to a
	// byte, because fewer blocks may be left than one call asks for.
	for n, at := int64(64<<10), int64(0); n > 0; {
		if err = unix.Fallocate(int(f.Fd()), 0, at, n); err != nil {
			n /= 2
		} else {
			at += n
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		return err
	}
	return nil
}

// Free ends the fault of Fill.
func (d *Disk) Free() {
	d.t.Helper()
	d.one("free", func() error { return os.Remove(d.filler()) })
}

// ReadOnly makes every write, or the sync after it, fail. If no file is open for writing, the
// filesystem becomes read-only, and opening a file for writing fails with EROFS. Otherwise
// syncs fail with EIO.
func (d *Disk) ReadOnly() { d.t.Helper(); d.one("make read-only", d.readOnly) }

func (d *Disk) readOnly() error {
	// Data that is dirty now would be lost, and only later writes should fail. An error of
	// this sync concerns data that an earlier fault lost.
	_ = command("sync", "--file-system", d.dir)
	err := d.remount(unix.MS_RDONLY)
	switch {
	case err == nil:
		d.remounted = true
	case errors.Is(err, unix.EBUSY):
		d.immutable = true
		err = command("chattr", "+i", d.image)
	}
	return err
}

// ReadWrite ends the fault of ReadOnly. The next sync may still fail once, because the kernel
// reports data there that it could not write during the fault.
func (d *Disk) ReadWrite() { d.t.Helper(); d.one("make writable", d.readWrite) }

func (d *Disk) readWrite() error {
	var errs []error
	if d.immutable {
		d.immutable = false
		errs = append(errs, command("chattr", "-i", d.image))
	}
	if d.remounted {
		d.remounted = false
		errs = append(errs, d.remount(0))
	}
	return errors.Join(errs...)
}

func (d *Disk) remount(flags uintptr) error {
	return unix.Mount("", d.dir, "", unix.MS_REMOUNT|unix.MS_NOATIME|flags, "")
}

// Freeze stalls all writes and syncs until Thaw or the end of the test. Each method for another
// fault fails while the disk is frozen, because it would stall as well.
func (d *Disk) Freeze() {
	d.t.Helper()
	d.one("freeze", func() error {
		if err := d.t.Context().Err(); err != nil {
			return err // nothing would thaw it: see New
		}
		// A freeze syncs first. The sync fails if an earlier fault lost data, and the
		// kernel reports each loss once, so the freeze is tried again.
		var err error
		for range 3 {
			if err = command("fsfreeze", "--freeze", d.dir); err == nil {
				d.frozen = true
				break
			}
		}
		return err
	})
}

// Thaw ends the fault of Freeze. It does nothing if the disk is not frozen.
func (d *Disk) Thaw() {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.frozen {
		return
	}
	d.frozen = false
	if err := command("fsfreeze", "--unfreeze", d.dir); err != nil {
		d.t.Errorf("faultdisk: thaw: %v", err)
	}
}

// one calls do, unless the disk is frozen, and reports its error to the test. The lock ensures
// that one fault begins or ends at a time.
func (d *Disk) one(what string, do func() error) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	err := errFrozen
	if !d.frozen {
		err = do()
	}
	if err != nil {
		d.t.Errorf("faultdisk: %s: %v", what, err)
	}
}

var errFrozen = errors.New("the disk is frozen")

// command runs a command. Its error includes the command's output.
func command(name string, args ...string) error {
	said, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w %s", name, err, bytes.TrimSpace(said))
	}
	return nil
}
