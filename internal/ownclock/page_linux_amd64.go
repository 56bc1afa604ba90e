package ownclock

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is memory that this process writes and programs read: the offset in
// nanoseconds, in its first eight bytes.
type page struct {
	file *os.File
	mem  []byte
}

const pageSize = 4096

func newPage() (*page, error) {
	fd, err := unix.MemfdCreate("ownclock", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("ownclock: memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), "ownclock")
	if err := file.Truncate(pageSize); err != nil {
		file.Close()
		return nil, fmt.Errorf("ownclock: %w", err)
	}
	mem, err := unix.Mmap(fd, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("ownclock: mmap: %w", err)
	}
	return &page{file, mem}, nil
}

// set is atomic: a program never reads half of an offset.
func (p *page) set(offset time.Duration) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(&p.mem[0])), int64(offset))
}

// close gives up our mapping; programs keep theirs.
func (p *page) close() {
	p.file.Close()
	_ = unix.Munmap(p.mem) // of what Mmap returned
}
