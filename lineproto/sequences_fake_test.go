package lineproto

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// fakeSequences serves a sequence for each name, with the values 1, 2, 3, ... The names none,
// broken, three and by:N are special: there is no such sequence, it fails, it has the values
// up to 3, its values are 0, N, 2N, ...
type fakeSequences struct {
	mu    sync.Mutex
	list  map[string]*fakeSequence
	calls int // of Take

	// pends reports whether a call must wait. Its wake is then passed to later, if that is
	// set, or else kept in wakes. Both are called with mu held.
	pends func(w *sequence.Wait, name []byte) bool
	later func(wake func())
	wakes []func()
}

type fakeSequence struct{ start, step, most, taken int64 }

var _ Sequences = (*fakeSequences)(nil)

func newFakeSequences() *fakeSequences { return &fakeSequences{list: make(map[string]*fakeSequence)} }

// find returns a sequence for a request, or an error. mu is held.
func (f *fakeSequences) find(w *sequence.Wait, name []byte, wake func()) (*fakeSequence, error) {
	if f.pends != nil && f.pends(w, name) {
		if w.Since++; f.later != nil {
			f.later(wake)
		} else {
			f.wakes = append(f.wakes, wake)
		}
		return nil, fmt.Errorf("sequence %s: %w", name, sequence.ErrPending)
	}
	switch string(name) {
	case "none":
		return nil, replies.New(ids.ERR, "reason=no-sequence there is no sequence none")
	case "broken":
		return nil, errors.New("out of order")
	}
	s := f.list[string(name)]
	if s == nil {
		s = &fakeSequence{start: 1, step: 1, most: 1 << 40}
		if by, ok := strings.CutPrefix(string(name), "by:"); ok {
			s.start = 0
			s.step, _ = strconv.ParseInt(by, 10, 64)
			s.step = max(1, min(s.step, 1000)) // as a sequence has it, also for names that FuzzParser makes up
		} else if string(name) == "three" {
			s.most = 3
		}
		f.list[string(name)] = s
	}
	return s, nil
}

func (f *fakeSequences) Take(w *sequence.Wait, name []byte, n int, _ bool, wake func(),
	to []worker.Run) ([]worker.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	s, err := f.find(w, name, wake)
	if err != nil {
		return nil, err
	}
	if s.taken+int64(n) > s.most {
		return nil, replies.New(ids.EXHAUSTED, "the sequence is used up")
	}
	if w.Owner = "taker"; w.Passed != nil {
		w.Owner = cmp.Or(w.Passed.Owner, w.Owner)
	}
	first := s.start + s.taken*s.step
	s.taken += int64(n)
	return append(to, worker.Run{First: worker.ID(first), Step: worker.ID(s.step), Len: n}), nil
}

func (f *fakeSequences) Show(w *sequence.Wait, name []byte, wake func()) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(w, name, wake)
	if err != nil {
		return "", err
	}
	return s.line(string(name)), nil
}

func (s *fakeSequence) line(name string) string {
	return fmt.Sprintf("name=%s taken=%d", name, s.taken)
}

func (f *fakeSequences) List(prefix []byte, rights *sequence.Rights) (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, s := range f.list {
		if strings.HasPrefix(name, string(prefix)) && rights.MayUse([]byte(name)) {
			lines = append(lines, s.line(name))
		}
	}
	slices.Sort(lines)
	return lines
}

// waiting returns how many calls wait.
func (f *fakeSequences) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.wakes)
}

// wakeAll lets no call wait any more, and wakes those that do, each twice.
func (f *fakeSequences) wakeAll() {
	f.mu.Lock()
	wakes := f.wakes
	f.pends, f.wakes = nil, nil
	f.mu.Unlock()
	for _, wake := range wakes {
		wake()
		wake()
	}
}
