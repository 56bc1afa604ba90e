package seq

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
)

func newLog(dir Dir) *entryLog { return &entryLog{dir: dir, name: journalName} }

// entriesOf returns entries by pairs of a key and a value, "" for none.
func entriesOf(words ...string) entries {
	e := entries{}
	for k := 0; k < len(words); k += 2 {
		e[words[k]] = nil
		if words[k+1] != "" {
			e[words[k]] = store.Marshal(words[k+1])
		}
	}
	return e
}

// put makes writes of one entry each.
func (l *entryLog) put(t *testing.T, words ...string) {
	t.Helper()
	for k := 0; k < len(words); k += 2 {
		if err := l.write(entriesOf(words[k : k+2]...)); err != nil {
			t.Fatal(err)
		}
	}
}

// contentIn returns what a new process reads in a file.
func contentIn(data []byte) (string, error) {
	all, err := newLog(&memDir{files: map[string][]byte{journalName: data}}).read()
	return all.String(), err
}

func (c content) String() string { return fmt.Sprintf("%s", map[string]json.RawMessage(c)) }

func (e entries) String() string { return fmt.Sprintf("%s", map[string]any(e)) }

// Somebody changes a byte of the file, or cuts it: a part of it would have positions that were issued since.
func TestDamagedLogIsUseless(t *testing.T) {
	dir := &memDir{}
	newLog(dir).put(t, "a", "first", "b", "second", "a", "third", "c", "fourth", "c", "")
	data := dir.files[journalName]
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
	dir := &memDir{}
	l := newLog(dir)
	l.put(t, "a", "first", "b", "second")
	data := dir.files[journalName]
	before, _ := contentIn(data)
	l.put(t, "a", "third")
	full := dir.files[journalName]
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
	dir := &memDir{}
	l := newLog(dir)
	l.put(t, "a", "first", "a", "old")
	old := dir.files[journalName]
	l = newLog(dir)
	l.put(t, "a", "third")
	data := dir.files[journalName]
	want, _ := contentIn(data)
	if got, err := contentIn(append(bytes.Clone(data), old[len(data):]...)); got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// The file does not grow without bound, and no entry is lost when it becomes shorter.
func TestLogShrinks(t *testing.T) {
	dir := &memDir{}
	l, want, longest := newLog(dir), entries{}, 0
	for k := range 2000 {
		change := entriesOf(fmt.Sprint(k%7), fmt.Sprintf("%04000d", k))
		maps.Copy(want, change)
		if l.isBlank() {
			change = want
		}
		if err := l.write(change); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, len(dir.files[journalName]))
	}
	if most := looseLen + 4*7*4000; longest > most || longest < looseLen {
		t.Errorf("the file has %d bytes, more than %d", longest, most)
	}
	if got, err := newLog(dir).read(); err != nil || got.String() != want.String() {
		t.Errorf("%v", err)
	}
}

// After a write that failed, nobody knows what the file has. The next one replaces it.
func TestLogIsReplacedAfterAFailure(t *testing.T) {
	dir := &memDir{}
	l := newLog(dir)
	l.put(t, "a", "first", "b", "second")
	dir.fails = func([]byte) error { return errors.New("no space left") }
	if err := l.write(entriesOf("a", "third")); err == nil || !l.isBlank() {
		t.Fatal(err, l.isBlank())
	}
	dir.fails = nil
	l.put(t, "a", "fourth")
	if all, err := l.read(); err != nil || all.String() != entriesOf("a", "fourth").String() {
		t.Errorf("%s, %v", all, err)
	}
}

// A file with a hundred thousand entries is never in memory as a whole when it is written anew. An append is one write,
// and is on the disk when it returns.
func TestLongFiles(t *testing.T) {
	dir := &notingDir{}
	l := newLog(dir)
	for _, row := range []struct {
		value string
		fits  func() bool
	}{
		{"new", func() bool { return len(dir.sizes) >= 1000*1000/pieceLen && slices.Max(dir.sizes) <= pieceLen+2000 }},
		{"appended", func() bool { return len(dir.sizes) == 2 && dir.sizes[0] > 1000*1000 && dir.sizes[1] == headLen }},
	} {
		all := entries{}
		for k := range 1000 {
			all[fmt.Sprint(k)] = store.Marshal(fmt.Sprintf("%s%01000d", row.value, k))
		}
		dir.sizes = nil
		if err := l.write(all); err != nil || !row.fits() {
			t.Errorf("%s: pieces of %d bytes, %v", row.value, dir.sizes, err)
		}
		if content, err := contentIn(dir.disk[journalName]); content != all.String() || err != nil {
			t.Errorf("%s: the disk has %.80s, %v", row.value, content, err)
		}
	}
}

// notingDir notes the sizes of all writes.
type notingDir struct {
	pagedDir
	sizes []int
}

func (d *notingDir) Replace(name string, write func(to io.WriterAt) error) error {
	return d.pagedDir.Replace(name, func(to io.WriterAt) error { return write(noting{to, &d.sizes}) })
}

func (d *notingDir) WriteAt(name string, data []byte, at int64, sync bool) error {
	d.sizes = append(d.sizes, len(data))
	return d.pagedDir.WriteAt(name, data, at, sync)
}

type noting struct {
	io.WriterAt
	sizes *[]int
}

func (n noting) WriteAt(data []byte, at int64) (int, error) {
	*n.sizes = append(*n.sizes, len(data))
	return n.WriterAt.WriteAt(data, at)
}
