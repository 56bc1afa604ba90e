package clienttest

import (
	"fmt"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// sequences is the lineproto.Sequences of a Server.
type sequences Server

var _ lineproto.Sequences = (*sequences)(nil)

// Take is part of lineproto.Sequences.
func (s *sequences) Take(w *sequence.Wait, name []byte, n int, _ bool, _ func(), to []worker.Run) ([]worker.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := (*backend)(s).refused(true); err != nil {
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
func (s *sequences) Show(_ *sequence.Wait, name []byte, _ func()) (string, error) {
	return fmt.Sprintf("name=%s mode=segment", name), nil
}

// List is part of lineproto.Sequences. No client asks for it.
func (s *sequences) List([]byte, *sequence.Rights) []string { return nil }
