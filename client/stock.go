package client

import (
	"sync"
	"time"

	"github.com/flaked/flaked/worker"
)

// stock is IDs that were asked for ahead.
type stock struct {
	size   int
	maxAge time.Duration

	mu sync.Mutex // guards what follows
	// parcels are in the order they came in; each is of one request.
	parcels []parcel
	have    int
	filling bool // a call for more is on the way
	closed  bool
}

type parcel struct {
	ids   []worker.ID
	asked time.Time
}

// take is one ID that is young enough, if there is one, and how many more
// should be asked for, if not 0. Who is told has to ask.
func (s *stock) take(now time.Time) (id worker.ID, ok bool, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.parcels) > 0 {
		p := &s.parcels[0]
		if now.Sub(p.asked) <= s.maxAge {
			id, ok = p.ids[0], true
			p.ids = p.ids[1:]
			s.have--
			if len(p.ids) > 0 {
				break
			}
		}
		s.have -= len(p.ids)
		s.parcels = s.parcels[1:]
		if ok {
			break
		}
	}
	if s.have <= s.size/2 && !s.filling && !s.closed {
		s.filling = true
		more = s.size - s.have
	}
	return id, ok, more
}

// filled is the end of a call for more, in vain if there are no ids.
func (s *stock) filled(ids []worker.ID, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.filling = false
	if len(ids) > 0 {
		s.have += len(ids)
		s.parcels = append(s.parcels, parcel{append([]worker.ID(nil), ids...), asked})
	}
}

// close throws everything away, and what is still to come.
func (s *stock) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parcels, s.have, s.closed = nil, 0, true
}
