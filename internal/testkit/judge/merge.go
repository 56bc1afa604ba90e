package judge

import (
	"cmp"
	"container/heap"
	"errors"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
)

// order compares two answers, as slices.SortFunc needs it.
type order func(a, b Answer) int

func byFirst(a, b Answer) int { return cmp.Compare(a.First, b.First) }
func byAsked(a, b Answer) int { return cmp.Compare(a.Asked, b.Asked) }
func byGot(a, b Answer) int   { return cmp.Compare(a.Got, b.Got) }

// merge reads several files, each sorted by compare, as one sorted sequence.
type merge struct {
	compare order
	readers []*reader // a heap; every reader has a head
	err     error
}

func newMerge(paths []string, compare order) (*merge, error) {
	m := &merge{compare: compare}
	for _, path := range paths {
		r, err := open(path)
		if err != nil {
			m.close()
			return nil, err
		}
		m.readers = append(m.readers, r)
	}
	m.readers = slices.DeleteFunc(m.readers, func(r *reader) bool { return m.ended(r) })
	heap.Init(m)
	return m, nil
}

// ended reports whether the reader has no head, at the end of its file or after an error. It
// closes such a reader and adds its error to m.err.
func (m *merge) ended(r *reader) bool {
	if r.err == nil {
		return false
	}
	if r.err != io.EOF {
		m.err = errors.Join(m.err, r.err)
	}
	m.err = errors.Join(m.err, r.file.Close())
	return true
}

// peek returns the answer that next would return, and false at the end.
func (m *merge) peek() (Answer, bool) {
	if len(m.readers) == 0 {
		return Answer{}, false
	}
	return m.readers[0].head, true
}

func (m *merge) next() (Answer, bool) {
	a, ok := m.peek()
	if !ok {
		return a, false
	}
	r := m.readers[0]
	if r.next(); m.ended(r) {
		heap.Pop(m)
	} else {
		heap.Fix(m, 0)
	}
	return a, true
}

func (m *merge) all() iter.Seq[Answer] {
	return func(yield func(Answer) bool) {
		for a, ok := m.next(); ok && yield(a); a, ok = m.next() {
		}
	}
}

func (m *merge) close() error {
	for _, r := range m.readers {
		m.err = errors.Join(m.err, r.file.Close())
	}
	m.readers = nil
	return m.err
}

func (m *merge) Len() int           { return len(m.readers) }
func (m *merge) Less(i, j int) bool { return m.compare(m.readers[i].head, m.readers[j].head) < 0 }
func (m *merge) Swap(i, j int)      { m.readers[i], m.readers[j] = m.readers[j], m.readers[i] }
func (m *merge) Push(r any)         { m.readers = append(m.readers, r.(*reader)) }
func (m *merge) Pop() any {
	last := m.readers[len(m.readers)-1]
	m.readers = m.readers[:len(m.readers)-1]
	return last
}

// sorted copies all answers of the files to new files in dir. Each new file is sorted by compare,
// so that merge can read them. At most chunk answers are in memory at a time.
func sorted(paths []string, dir string, compare order, chunk int) (files []string, err error) {
	held := make([]Answer, 0, chunk)
	spill := func() error {
		slices.SortFunc(held, compare)
		path := filepath.Join(dir, "sorted-"+strconv.Itoa(len(files)))
		r, err := NewRecorder(path)
		if err != nil {
			return err
		}
		for _, a := range held {
			r.write(a)
		}
		files, held = append(files, path), held[:0]
		return r.Close()
	}
	for _, path := range paths {
		r, err := open(path)
		if err != nil {
			return files, err
		}
		for ; r.err == nil; r.next() {
			if held = append(held, r.head); len(held) == chunk {
				if err := spill(); err != nil {
					return files, errors.Join(err, r.file.Close())
				}
			}
		}
		if err := r.file.Close(); r.err != io.EOF || err != nil {
			return files, errors.Join(r.err, err)
		}
	}
	return files, spill()
}
