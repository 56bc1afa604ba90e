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

// Disk is a mounted filesystem. Its methods may be called by several
// goroutines, those that are not the test's included: what fails is an error of
// the test, and does not end it.
type Disk struct {
	t     testing.TB
	base  string // holds the two below
	dir   string // where it is mounted
	image string // the file that it is in

	mu        sync.Mutex // guards what follows, and makes one fault at a time
	frozen    bool
	remounted bool // read-only
	immutable bool // the image is
}

// size is 8 MiB: a state directory is two blocks.
const size = 8 << 20

// New makes a disk that lives until the test ends, or skips the test.
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
	// Not in a cleanup: those of processes that wait for the disk may come
	// first, and wait for the processes.
	context.AfterFunc(t.Context(), d.Thaw)
	if err := d.make(); err != nil {
		t.Skipf("faultdisk: there is no disk to be had here: %v", err)
	}
	return d
}

// make makes the filesystem, mounts it, and sees that it can be made to fail.
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
	// No journal: see the package comment, and it is a third of the space. Nothing
	// kept for root, nothing left to be done in the background.
	if err := command("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-N", "256",
		"-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=0,nodiscard", d.image); err != nil {
		return err
	}
	if err := command("mount", "-t", "ext4", "-o", "loop,noatime,errors=continue", d.image, d.dir); err != nil {
		return err
	}
	return d.probe()
}

// probe sees that an immutable image fails writes: some filesystems that it may
// be on know the flag, and write on where a file is open.
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

// Dir is where the disk is mounted: a directory of mode 0700.
func (d *Disk) Dir() string { return d.dir }

// filler is the file that Fill makes.
func (d *Disk) filler() string { return filepath.Join(d.dir, "filler") }

// Fill leaves no block for others: what would grow fails with ENOSPC. Blocks
// that a file has already are written as ever.
func (d *Disk) Fill() { d.t.Helper(); d.one("fill", d.fill) }

func (d *Disk) fill() error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	// Allocated, not written: what is written reserves more than it comes to take,
	// and gives that back when the kernel likes. Down to a byte, as the last blocks
	// may be fewer than are asked for.
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

// Free ends what Fill began.
func (d *Disk) Free() {
	d.t.Helper()
	d.one("free", func() error { return os.Remove(d.filler()) })
}

// ReadOnly makes every write fail, or its sync. Where nothing is open for
// writing that is EROFS, on opening; else EIO.
func (d *Disk) ReadOnly() { d.t.Helper(); d.one("make read-only", d.readOnly) }

func (d *Disk) readOnly() error {
	// What is dirty now would be lost, and is not what this is about. An error is
	// of what has been lost before.
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

// ReadWrite ends what ReadOnly began. The first sync afterwards may fail once
// more, for what the kernel failed to write before.
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

// Freeze stalls whatever writes or syncs, until Thaw or the test's end. The
// other faults have to wait: they would stall as well.
func (d *Disk) Freeze() {
	d.t.Helper()
	d.one("freeze", func() error {
		if err := d.t.Context().Err(); err != nil {
			return err // nobody would thaw it: see New
		}
		// A freeze syncs first, and is refused for what an earlier fault has
		// lost: an error that is told once.
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

// Thaw ends what Freeze began, if it did.
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

// one makes one fault at a time.
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

// command runs one, and makes what it says the error.
func command(name string, args ...string) error {
	said, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w %s", name, err, bytes.TrimSpace(said))
	}
	return nil
}
