//go:build linux || darwin

package localcache

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func replace(d *Dir, name, content string) error {
	return d.Replace(name, func(to io.WriterAt) error {
		_, err := to.WriteAt([]byte(content), 0)
		return err
	})
}

// change writes into a file, durably.
func change(d *Dir, name, content string, at int64) error {
	return d.Change(name, true, func(to io.WriterAt) error {
		_, err := to.WriteAt([]byte(content), at)
		return err
	})
}

// Every file goes along with the directory, whatever stands at its old path.
func TestFilesGoAlongWithARenamedDirectory(t *testing.T) {
	for name, again := range map[string]func(path string) error{
		"nothing":             func(string) error { return nil },
		"an empty directory":  func(path string) error { return os.Mkdir(path, 0o700) },
		"a file":              func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link to elsewhere": func(path string) error { return os.Symlink(os.TempDir(), path) },
		"another node's directory": func(path string) error {
			c, err := Open(path)
			return errors.Join(err, replace(c.Dir(), "journal", "theirs"), c.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			c := mustOpen(t, dir)
			do(t, replace(c.Dir(), "journal", "old"), replace(c.Dir(), "cache", "old"))
			do(t, os.Rename(dir, dir+".old"), again(dir))
			do(t, replace(c.Dir(), "journal", "new"), c.Dir().Remove("cache"), c.Dir().Remove("none"),
				change(c.Dir(), "journal", " line", 3))
			mustSave(t, c, sample())
			if data, err := c.Dir().ReadFile("journal"); err != nil || string(data) != "new line" {
				t.Errorf("%q, %v", data, err)
			}
			if data, err := os.ReadFile(dir + ".old/journal"); err != nil || string(data) != "new line" {
				t.Errorf("at its new path: %q, %v", data, err)
			}
			if _, err := c.Dir().ReadFile("cache"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after it was removed: %v", err)
			}
			data, err := os.ReadFile(filepath.Join(dir, "journal"))
			if name == "another node's directory" && (err != nil || string(data) != "theirs") ||
				name != "another node's directory" && err == nil {
				t.Errorf("at its old path: %q, %v", data, err)
			}
			do(t, c.Remove(), c.Close())
			if _, err := os.Lstat(filepath.Join(dir+".old", stateName)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the state file was not deleted: %v", err)
			}
		})
	}
}

// A directory that was deleted takes no more files, and nothing comes to be at its path.
func TestDeletedDirectoryTakesNoFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := mustOpen(t, dir)
	do(t, os.RemoveAll(dir), os.Mkdir(dir, 0o700))
	if err := replace(c.Dir(), "journal", "new"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := change(c.Dir(), "journal", "new", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

// A process that has given its directory up leaves the files to the next one, also if its last write hung until then.
func TestClosedDirectoryIsLeftToTheNextProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := mustOpen(t, dir)
	d := c.Dir()
	do(t, replace(d, "journal", "first"))
	hung, err := d.root.OpenFile("journal.new", os.O_WRONLY|os.O_CREATE, 0o600)
	do(t, err, c.Close())
	next := mustOpen(t, dir)
	do(t, replace(next.Dir(), "journal", "next"))
	_, err = hung.WriteString("first, again")
	do(t, err, hung.Close())
	for what, err := range map[string]error{
		"rename":  d.root.Rename("journal.new", "journal"),
		"replace": replace(d, "journal", "first, again"),
		"remove":  d.Remove("journal"),
		"write":   change(d, "journal", "first, again", 0),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if data, err := next.Dir().ReadFile("journal"); err != nil || string(data) != "next" {
		t.Errorf("%q, %v", data, err)
	}
}

// Check fails if a process that starts now would open another directory or state file than this process has open.
func TestCheckOfTheDirectory(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(dir, state string) error
		want string // the end of what is gone, "" for nothing
	}{
		{"nothing happens", func(string, string) error { return nil }, ""},
		{"its journal is deleted", func(dir, _ string) error { return os.Remove(filepath.Join(dir, "journal")) }, ""},
		{"it is renamed there and back", func(dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Rename(dir+".old", dir))
		}, ""},
		{"a parent is a link by now", func(dir, _ string) error {
			parent := filepath.Dir(dir)
			return errors.Join(os.Rename(parent, parent+".old"), os.Symlink(parent+".old", parent))
		}, ""},
		{"it is deleted", func(dir, _ string) error { return os.RemoveAll(dir) }, "/state"},
		{"it is deleted, and made again", func(dir, _ string) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700))
		}, "/state"},
		{"it is renamed", func(dir, _ string) error { return os.Rename(dir, dir+".old") }, "/state"},
		{"a link leads to it", func(dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Symlink(dir+".old", dir))
		}, "/state"},
		{"a copy takes its place", func(dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.CopyFS(dir, os.DirFS(dir+".old")))
		}, "/state"},
		{"the state file is deleted", func(_, state string) error { return os.Remove(state) }, "/state/" + stateName},
		{"the state file is replaced by a copy", func(_, state string) error {
			data, err := os.ReadFile(state)
			return errors.Join(err, os.Remove(state), os.WriteFile(state, data, 0o600))
		}, "/state/" + stateName},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "state")
			c := mustOpen(t, dir)
			mustSave(t, c, sample())
			do(t, replace(c.Dir(), "journal", "content"), c.Dir().Check(), row.do(dir, filepath.Join(dir, stateName)))
			err := c.Dir().Check()
			if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, ErrGone) ||
				err.Error() != filepath.Dir(dir)+row.want+" was deleted, renamed or replaced") {
				t.Error(err)
			}
			mustSave(t, c, sample()) // the node goes on
		})
	}
}
