package localcache

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// stateName is the name of the state file in its directory.
const stateName = "flaked.state"

// Dir is an open state directory. Every file of it is opened, replaced and removed through this handle. So all of them
// stay together if somebody renames the directory, and makes another one under its path.
//
// After Close no file is opened, replaced or removed any more. A write that is under way may still reach its file,
// which the first write of the next process replaces.
type Dir struct {
	root *os.Root
	self *os.File // the directory itself: for syncs, and for its metadata
	path string   // under which it was opened. It is for messages, and for Check
	// state is the state file, once Open has locked it.
	state *os.File
	// wasOpenToOthers is the mode before Open took away the rights of others, 0 if they had none.
	wasOpenToOthers fs.FileMode
}

// openHandle opens a directory, and follows symbolic links.
func openHandle(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	self, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	return &Dir{root: root, self: self, path: path}, nil
}

// WasOpenToOthers returns the mode that the directory had before Open took away the rights of other users. It is 0 if
// they had none.
func (d *Dir) WasOpenToOthers() fs.FileMode { return d.wasOpenToOthers }

// Close closes the handle. It does not wait for calls that are under way.
func (d *Dir) Close() error { return errors.Join(d.root.Close(), d.self.Close()) }

// ReadFile returns the content of a file. The error is fs.ErrNotExist if there is none.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	data, err := d.root.ReadFile(name)
	return data, d.withPath(err)
}

// Replace replaces a file durably by one that write writes: after a crash the file has either content. There must be
// one call at a time for each name.
func (d *Dir) Replace(name string, write func(to io.WriterAt) error) error {
	next := name + ".new"
	// A write of an earlier process may hang in a file of this name, and must not get into the new content.
	if err := d.root.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.withPath(err)
	}
	f, err := d.root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return d.withPath(err)
	}
	if err = write(headApart{f}); err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	//mutant:s31-journal-by-path by seqsim -> if err := os.Rename(d.path+"/"+next, d.path+"/"+name); err != nil {
	if err := d.root.Rename(next, name); err != nil {
		return err
	}
	return d.self.Sync()
}

// headApart is a new file. It writes the first 4 KiB with a call of their own, because Dir.Change writes them
// often. When a part of what one call wrote changes, Linux may write all of it to the disk again.
type headApart struct{ *os.File }

func (f headApart) WriteAt(data []byte, at int64) (n int, err error) {
	if at == 0 {
		n, err = f.File.WriteAt(data[:min(len(data), 4096)], 0)
	}
	if err == nil && n < len(data) {
		var more int
		more, err = f.File.WriteAt(data[n:], at+int64(n))
		n += more
	}
	return n, err
}

// Change lets write write into a file that exists, durably if sync is set. All goes through one descriptor: only the
// one that has written a page surely hears that the disk did not take it. There must be one call at a time for each
// name.
func (d *Dir) Change(name string, sync bool, write func(to io.WriterAt) error) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return d.withPath(err)
	}
	if err = write(f); err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Remove removes a file durably. It is no error if there is none.
func (d *Dir) Remove(name string) error {
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.withPath(err)
	}
	return d.self.Sync()
}

// withPath returns err with the whole path of the file that it names.
func (d *Dir) withPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: strings.TrimSuffix(e.Op, "at"), Path: filepath.Join(d.path, e.Path), Err: e.Err}
	}
	return err
}
