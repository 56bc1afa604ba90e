package client

import (
	"fmt"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// SetShown makes f return the fields that SEQ has besides the name, as of an ordered sequence.
func (s *FakeNode) SetShown(f func(name string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = f
}

// Hold makes requests for values call f first, which may block, and may return a refusal.
func (s *FakeNode) Hold(f func(name string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = f
}

// Looks returns how many requests of SEQ there were.
func (s *FakeNode) Looks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

// fakeSequences is the lineproto.Sequences of a Node.
type fakeSequences FakeNode

var _ lineproto.Sequences = (*fakeSequences)(nil)

// Take is part of lineproto.Sequences.
func (s *fakeSequences) Take(w *sequence.Wait, name []byte, n int, _ bool, _ func(),
	to []worker.Run) ([]worker.Run, error) {
	s.mu.Lock()
	if hold := s.hold; hold != nil {
		s.mu.Unlock()
		err := hold(string(name))
		s.mu.Lock()
		if err != nil {
			s.mu.Unlock()
			return to, err
		}
	}
	defer s.mu.Unlock()
	if err := (*fakeBackend)(s).refused(true); err != nil {
		return to, err
	}
	first := max(s.next[string(name)], 1)
	if zero, ok := s.next[string(name)]; ok {
		first = zero
	}
	if key := string(name) + " " + w.Key; w.Key != "" {
		if known, ok := s.keyed[key]; ok {
			return append(to, worker.Run{First: worker.ID(known), Step: 1, Len: 1}), nil
		}
		s.keyed[key] = first
	}
	s.next[string(name)] = first + int64(n)
	return append(to, worker.Run{First: worker.ID(first), Step: 1, Len: n}), nil
}

// Show is part of lineproto.Sequences.
func (s *fakeSequences) Show(_ *sequence.Wait, name []byte, _ func()) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.shown != nil {
		return fmt.Sprintf("name=%s mode=ordered %s", name, s.shown(string(name))), nil
	}
	return fmt.Sprintf("name=%s mode=segment", name), nil
}

// List is part of lineproto.Sequences. No client asks for it.
func (s *fakeSequences) List([]byte, *sequence.Rights) []string { return nil }
