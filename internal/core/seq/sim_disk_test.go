package seq

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/localcache"
)

// A history with real directories plays on the file system, so that somebody can rename them while nodes run.

// makeBase makes the place of the directories, in memory if the machine has such a file system.
func (h *history) makeBase() {
	parent := "/dev/shm"
	if fi, err := os.Stat(parent); err != nil || !fi.IsDir() {
		parent = ""
	}
	var err error
	if h.base, err = os.MkdirTemp(parent, "seqsim-"); err != nil {
		h.violated("directory", "%v", err)
	}
}

// removeBase removes what makeBase has made.
func (h *history) removeBase() {
	if h.base != "" {
		for _, n := range h.nodes {
			_ = n.dir.Close()
		}
		_ = os.RemoveAll(h.base)
	}
}

// newPath returns a path for a directory that nobody has used.
func (h *history) newPath() string {
	h.paths++
	return filepath.Join(h.base, fmt.Sprint(h.paths))
}

// newDisk returns the new directory of a node with this identity.
func (h *history) newDisk(self string) simDisk {
	d := simDisk{self: self, files: &memDir{}}
	if h.base != "" {
		d.at = h.newPath()
		h.do(os.Mkdir(d.at, 0o700))
	}
	return d
}

// openDir returns the directory of the node to a new process. That of the process before is closed.
func (n *simNode) openDir() entrylog.Dir {
	if n.disk.at == "" {
		return n.disk.files
	}
	if n.dir != nil {
		n.h.do(n.dir.Close())
	}
	var err error
	if n.dir, err = localcache.Open(n.disk.at); err != nil {
		panic(err)
	}
	return n.dir.Dir()
}

// journal returns the content of the journal, nil if there is none.
func (d *simDisk) journal() []byte {
	if d.at == "" {
		return d.files.Files[journalName]
	}
	data, _ := os.ReadFile(filepath.Join(d.at, journalName))
	return data
}

// put puts a journal into the directory, which no process uses.
func (d *simDisk) put(data []byte) {
	switch {
	case data == nil:
	case d.at == "":
		d.files.Files = map[string][]byte{journalName: data}
	default:
		_ = os.WriteFile(filepath.Join(d.at, journalName), data, 0o600)
	}
}

// do reports an error of the file system.
func (h *history) do(err error) {
	if err != nil {
		h.violated("directory", "%v", err)
	}
}

// moveDirectory renames the directory of a node that runs, and somebody makes the old path again: with an empty
// directory, or with that of another node. The state file is open, so it goes along.
func (h *history) moveDirectory(n *simNode) {
	was, o := n.disk.at, h.nodes[h.rng.IntN(len(h.nodes))]
	n.disk.at = h.newPath()
	h.do(os.Rename(was, n.disk.at))
	if o == n {
		h.note("the directory of node %d is renamed, and its path made again", n.id)
		h.do(os.Mkdir(was, 0o700))
		return
	}
	h.note("the directories of nodes %d and %d change places", n.id, o.id)
	theirs := o.disk.at
	h.do(os.Rename(theirs, was))
	h.do(os.Rename(n.disk.at, theirs))
	o.disk.at, n.disk.at = was, theirs
}
