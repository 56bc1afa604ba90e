package ownclock

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is memory that this process writes and programs read. It holds two offsets of eight bytes
// each, in nanoseconds. The wall clock is ahead by their sum, the other clocks by the second
// offset. So Pass changes the second offset only, with one store, and no program can see it
// applied to one clock and not to another.
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

// set stores each offset atomically, so that a program never reads a half-written offset.
func (p *page) set(wall, all time.Duration) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(&p.mem[0])), int64(wall))
	atomic.StoreInt64((*int64)(unsafe.Pointer(&p.mem[8])), int64(all))
}

// close closes the file and removes the mapping in this process. Programs keep their mappings.
func (p *page) close() {
	p.file.Close()
	_ = unix.Munmap(p.mem) // cannot fail for memory from Mmap
}
