// Package memdir has a state directory in memory, for tests of what is kept in its files.
package memdir

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"sync"
)

// Dir is a state directory in memory. Fails, if it is not nil, is asked before each change: for the new content, nil to
// remove the file. Check returns Gone.
type Dir struct {
	mu    sync.Mutex // guards Files
	Files map[string][]byte
	Fails func(data []byte) error
	Gone  error
}

func (d *Dir) Check() error { return d.Gone }

func (d *Dir) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if data, ok := d.Files[name]; ok {
		return bytes.Clone(data), nil
	}
	return nil, fs.ErrNotExist
}

func (d *Dir) Replace(name string, write func(to io.WriterAt) error) error {
	var data file
	if err := write(&data); err != nil {
		return err
	}
	if err := d.failed(data); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Files == nil {
		d.Files = map[string][]byte{}
	}
	d.Files[name] = data
	return nil
}

func (d *Dir) Change(name string, _ bool, write func(to io.WriterAt) error) error {
	data, at, err := Collect(write)
	if err != nil {
		return err
	}
	if err := d.failed(data); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	was, ok := d.Files[name]
	if !ok {
		return fs.ErrNotExist
	}
	now := file(bytes.Clone(was))
	_, err = now.WriteAt(data, at)
	d.Files[name] = now
	return err
}

// Collect returns what write writes, as one piece, and where that begins.
func Collect(write func(to io.WriterAt) error) (data []byte, at int64, err error) {
	var all pieces
	if err := write(&all); err != nil {
		return nil, 0, err
	}
	at = math.MaxInt64
	for begin := range all {
		at = min(at, begin)
	}
	whole := file{}
	for begin, piece := range all {
		_, _ = whole.WriteAt(piece, begin-at) // never fails
	}
	return whole, at, nil
}

// One returns a write of one piece.
func One(data []byte, at int64) func(to io.WriterAt) error {
	return func(to io.WriterAt) error {
		_, err := to.WriteAt(data, at)
		return err
	}
}

// pieces are what was written, by where each piece begins.
type pieces map[int64][]byte

func (p *pieces) WriteAt(data []byte, at int64) (int, error) {
	if *p == nil {
		*p = pieces{}
	}
	(*p)[at] = bytes.Clone(data)
	return len(data), nil
}

// file is the content of a file.
type file []byte

func (f *file) WriteAt(data []byte, at int64) (int, error) {
	if more := int(at) + len(data) - len(*f); more > 0 {
		*f = append(*f, make([]byte, more)...)
	}
	return copy((*f)[at:], data), nil
}

func (d *Dir) Remove(name string) error {
	if err := d.failed(nil); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.Files, name)
	return nil
}

func (d *Dir) failed(data []byte) error {
	if d.Fails == nil {
		return nil
	}
	return d.Fails(data)
}

// Paged is a directory as Linux keeps it: processes read pages that the disk has not taken, and after a sync that
// fails, no other one writes these pages.
type Paged struct {
	Dir
	Disk   map[string][]byte // what a power cut leaves
	dirty  map[int]bool      // pages of the file
	Broken bool              // the next sync fails, and the process is killed before it removes the file
}

func (d *Paged) Replace(name string, write func(to io.WriterAt) error) error {
	if err := d.Dir.Replace(name, write); err != nil {
		return err
	}
	d.dirty, d.Disk = map[int]bool{}, map[string][]byte{name: bytes.Clone(d.Files[name])}
	return nil
}

func (d *Paged) Change(name string, sync bool, write func(to io.WriterAt) error) error {
	const page = 4096
	data, at, err := Collect(write)
	if err != nil {
		return err
	}
	if err := d.Dir.Change(name, sync, One(data, at)); err != nil {
		return err
	}
	for p := int(at) / page; p <= (int(at)+len(data)-1)/page; p++ {
		d.dirty[p] = true
	}
	if !sync {
		return nil
	}
	now, pages := d.Files[name], d.dirty
	if d.dirty = map[int]bool{}; d.Broken {
		d.Fails = func([]byte) error { return errKilled }
		return errors.New("input/output error")
	}
	disk := append(d.Disk[name], make([]byte, len(now)-len(d.Disk[name]))...)
	for p := range pages {
		copy(disk[p*page:], now[p*page:min((p+1)*page, len(now))])
	}
	d.Disk[name] = disk
	return nil
}

var errKilled = errors.New("the process was killed")
