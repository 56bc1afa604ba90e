package entrylog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memdir"
)

const testName = "some.file"

func newLog(dir Dir) *Log { return New(dir, testName) }

// entriesOf returns entries by pairs of a key and a value, "" for none.
func entriesOf(words ...string) Entries {
	e := Entries{}
	for k := 0; k < len(words); k += 2 {
		e[words[k]] = nil
		if words[k+1] != "" {
			e[words[k]] = store.Marshal(words[k+1])
		}
	}
	return e
}

// put makes writes of one entry each.
func (l *Log) put(t *testing.T, words ...string) {
	t.Helper()
	for k := 0; k < len(words); k += 2 {
		if err := l.Write(entriesOf(words[k : k+2]...)); err != nil {
			t.Fatal(err)
		}
	}
}

// contentIn returns what a new process reads in a file.
func contentIn(data []byte) (string, error) {
	all, err := newLog(&memdir.Dir{Files: map[string][]byte{testName: data}}).Read()
	return all.String(), err
}

func (c Content) String() string { return fmt.Sprintf("%s", map[string]json.RawMessage(c)) }

func (e Entries) String() string { return fmt.Sprintf("%s", map[string]any(e)) }

// Somebody changes a byte of the file, or cuts it: a part of it would have positions that were issued since.
func TestDamagedLogIsUseless(t *testing.T) {
	dir := &memdir.Dir{}
	newLog(dir).put(t, "a", "first", "b", "second", "a", "third", "c", "fourth", "c", "")
	data := dir.Files[testName]
	whole, err := contentIn(data)
	if want := entriesOf("a", "third", "b", "second").String(); whole != want || err != nil {
		t.Fatal(whole, err)
	}
	for k := range data {
		if got, err := contentIn(data[:k]); err == nil {
			t.Errorf("cut at %d: %s", k, got)
		}
		damaged := bytes.Clone(data)
		damaged[k] ^= 1
		if got, err := contentIn(damaged); err == nil {
			t.Errorf("with another byte %d: %s", k, got)
		}
	}
}

// The power fails, or the process is killed, while it appends. Whichever parts of the write have come to the disk, the
// file has either the old entries or the new ones.
func TestTornAppendLeavesTheEntriesOfBefore(t *testing.T) {
	dir := &memdir.Dir{}
	l := newLog(dir)
	l.put(t, "a", "first", "b", "second")
	data := dir.Files[testName]
	before, _ := contentIn(data)
	l.put(t, "a", "third")
	full := dir.Files[testName]
	after, _ := contentIn(full)
	for from := len(data); from <= len(full); from++ {
		for end := from; end <= len(full); end++ {
			torn := append(bytes.Clone(data), make([]byte, end-len(data))...)
			copy(torn[from:], full[from:end])
			got, err := contentIn(torn)
			if want := map[bool]string{false: before, true: after}[from == len(data) && end == len(full)]; got != want || err != nil {
				t.Fatalf("bytes %d to %d are on the disk: %s, %v", from, end, got, err)
			}
		}
	}
}

// A file that was deleted leaves frames on the disk. After a power cut they may stand where an append was to come.
func TestFramesOfADeletedFileDoNotCount(t *testing.T) {
	dir := &memdir.Dir{}
	l := newLog(dir)
	l.put(t, "a", "first", "a", "old")
	old := dir.Files[testName]
	l = newLog(dir)
	l.put(t, "a", "third")
	data := dir.Files[testName]
	want, _ := contentIn(data)
	if got, err := contentIn(append(bytes.Clone(data), old[len(data):]...)); got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// The file does not grow without bound, and no entry is lost when it becomes shorter.
func TestLogShrinks(t *testing.T) {
	dir := &memdir.Dir{}
	l, want, longest := newLog(dir), Entries{}, 0
	for k := range 2000 {
		change := entriesOf(fmt.Sprint(k%7), fmt.Sprintf("%04000d", k))
		maps.Copy(want, change)
		if l.IsBlank() {
			change = want
		}
		if err := l.Write(change); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, len(dir.Files[testName]))
	}
	if most := spareLen + 4*7*4000; longest > most || longest < spareLen {
		t.Errorf("the file has %d bytes, more than %d", longest, most)
	}
	if got, err := newLog(dir).Read(); err != nil || got.String() != want.String() {
		t.Errorf("%v", err)
	}
}

// After a write that failed, nobody knows what the file has. The next one replaces it.
func TestLogIsReplacedAfterAFailure(t *testing.T) {
	dir := &memdir.Dir{}
	l := newLog(dir)
	l.put(t, "a", "first", "b", "second")
	dir.Fails = func([]byte) error { return errors.New("no space left") }
	if err := l.Write(entriesOf("a", "third")); err == nil || !l.IsBlank() {
		t.Fatal(err, l.IsBlank())
	}
	dir.Fails = nil
	l.put(t, "a", "fourth")
	if all, err := l.Read(); err != nil || all.String() != entriesOf("a", "fourth").String() {
		t.Errorf("%s, %v", all, err)
	}
}

// A long file is written in pieces, so it is never in memory as a whole. An append is one change of the file, and its
// head another one. The append is on the disk when Write returns.
func TestLongFiles(t *testing.T) {
	dir := &notingDir{}
	l := newLog(dir)
	for _, row := range []struct {
		value   string
		changes int
	}{{"new", 0}, {"appended", 2}} {
		all := Entries{}
		for k := range 1000 {
			all[fmt.Sprint(k)] = store.Marshal(fmt.Sprintf("%s%01000d", row.value, k))
		}
		dir.sizes, dir.changes = nil, 0
		err := l.Write(all)
		fits := len(dir.sizes) >= 1000*1000/pieceLen && slices.Max(dir.sizes) <= pieceLen+2000
		if err != nil || !fits || dir.changes != row.changes {
			t.Errorf("%s: %d changes, pieces of %d bytes, %v", row.value, dir.changes, dir.sizes, err)
		}
		if content, err := contentIn(dir.Disk[testName]); content != all.String() || err != nil {
			t.Errorf("%s: the disk has %.80s, %v", row.value, content, err)
		}
	}
}

// notingDir notes the sizes of all writes, and counts the changes of files.
type notingDir struct {
	memdir.Paged
	sizes   []int
	changes int
}

func (d *notingDir) Replace(name string, write func(to io.WriterAt) error) error {
	return d.Paged.Replace(name, func(to io.WriterAt) error { return write(noting{to, &d.sizes}) })
}

func (d *notingDir) Change(name string, sync bool, write func(to io.WriterAt) error) error {
	d.changes++
	return d.Paged.Change(name, sync, func(to io.WriterAt) error { return write(noting{to, &d.sizes}) })
}

type noting struct {
	io.WriterAt
	sizes *[]int
}

func (n noting) WriteAt(data []byte, at int64) (int, error) {
	*n.sizes = append(*n.sizes, len(data))
	return n.WriterAt.WriteAt(data, at)
}
