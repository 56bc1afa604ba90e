package lineproto

import (
	"iter"
	"math"
	"slices"
)

// unlimited is the number of ticks of a connection that may be idle for as long as there is
// room. Its due tick is unlimited plus the tick since which it is idle, and never comes.
const unlimited = math.MaxInt64 / 2

// crowded reports whether more than half of the connections, or of the memory for unfinished
// requests, are in use.
func (s *Server) crowded() bool {
	return s.counters.open.Load() > int64(s.cfg.MaxConns/2) || s.gathered.Load() > maxGathered/2
}

// surplus are the idle connections that must make room in one sweep: n of those whose due is limit at most.
type surplus struct {
	limit int64
	n     int
}

// surplus returns the longest idle of the connections that have been idle for IdleTimeout, as many as are over half
// of MaxConns. It returns none if the server is not crowded.
func (e *engine) surplus(now int64, dues iter.Seq[int64]) surplus {
	if !e.srv.crowded() {
		return surplus{}
	}
	var idle []int64
	for due := range dues {
		if due >= unlimited && due-unlimited+e.idle <= now {
			idle = append(idle, due)
		}
	}
	n := int(e.srv.counters.open.Load()) - e.srv.cfg.MaxConns/2
	if n <= 0 || n > len(idle) { // n <= 0: memory is short
		n = len(idle)
	}
	if n == 0 {
		return surplus{}
	}
	slices.Sort(idle)
	return surplus{limit: idle[n-1], n: n}
}

// ends reports whether a connection with this due must end, and takes it off the surplus.
func (s *surplus) ends(due, now int64) bool {
	if due <= now {
		return true
	}
	if due < unlimited || due > s.limit || s.n == 0 {
		return false
	}
	s.n--
	return true
}
