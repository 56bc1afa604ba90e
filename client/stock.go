package client

import (
	"sync"
	"time"

	"github.com/flaked/flaked/worker"
)

// stock holds prefetched IDs.
type stock struct {
	size   int
	maxAge time.Duration

	mu sync.Mutex // guards what follows
	// parcels are in the order of their arrival. Each is the answer to one call. have is the
	// number of IDs in all parcels.
	parcels []parcel
	have    int
	// filled is closed when the call for more that is on the way ends, nil if there is none. waiting is the number of
	// callers that wait for it.
	filled  chan struct{}
	waiting int
}

// parcel has IDs, whose age counts from asked.
type parcel struct {
	numbers []worker.ID
	asked   time.Time
}

// take returns one ID that is at most maxAge old. ok is false if there is none. If more is
// not 0, the caller must submit a call for that many IDs, whose end calls end.
func (s *stock) take(now time.Time) (id worker.ID, ok bool, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeLocked(now)
}

// await is take, for a caller that can wait. If wait is not nil, the caller must wait until it is closed and call await
// again: a number that it asked for itself could be above those that are on the way. again is false for the first time.
func (s *stock) await(now time.Time, again bool) (id worker.ID, ok bool, more int, wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again {
		s.waiting--
	}
	if id, ok, more = s.takeLocked(now); !ok && more == 0 {
		s.waiting++
		wait = s.filled
	}
	return id, ok, more, wait
}

// leave ends the wait of a caller that does not call await again.
func (s *stock) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
}

func (s *stock) takeLocked(now time.Time) (id worker.ID, ok bool, more int) {
	for len(s.parcels) > 0 {
		p := &s.parcels[0]
		if fresh(now.Sub(p.asked), now.Round(0).Sub(p.asked.Round(0)), s.maxAge) {
			id, ok = p.numbers[0], true
			p.numbers = p.numbers[1:]
			s.have--
			if len(p.numbers) > 0 {
				break
			}
		}
		s.have -= len(p.numbers)
		s.parcels = s.parcels[1:]
		if ok {
			break
		}
	}
	if s.have <= s.size/2 && s.filled == nil {
		s.filled = make(chan struct{})
		more = s.size - s.have + s.waiting
	}
	return id, ok, more
}

// fresh reports whether IDs may still be used after a time by the monotonic and by the wall clock. If the clocks have
// moved apart, the process was resumed from a snapshot, perhaps more than once.
func fresh(monotonic, wall, maxAge time.Duration) bool {
	return monotonic <= maxAge && (wall-monotonic).Abs() <= maxAge
}

// end ends a call for more IDs. Without any the call has failed.
func (s *stock) end(numbers []worker.ID, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.filled)
	s.filled = nil
	if len(numbers) > 0 {
		s.have += len(numbers)
		s.parcels = append(s.parcels, parcel{append([]worker.ID(nil), numbers...), asked})
	}
}
