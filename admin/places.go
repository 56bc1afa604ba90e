package admin

import (
	"net/netip"
	"sync"
)

// Besides probes, so many requests are answered at once, and so many pages are
// kept current. One address gets half of either at most.
const (
	maxAnswers = 32
	maxStreams = 16
)

// places is how many may do something at once.
type places struct {
	most int

	mu    sync.Mutex // guards what follows
	taken int
	by    map[netip.Prefix]int
}

func newPlaces(most int) *places { return &places{most: most, by: map[netip.Prefix]int{}} }

// take takes a place, and reports whether there was one.
func (p *places) take(from netip.Prefix) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == p.most || p.by[from] == p.share() {
		return false
	}
	p.taken++
	p.by[from]++
	return true
}

// share is how many places one address may have.
func (p *places) share() int { return p.most / 2 }

// leave gives a place back.
func (p *places) leave(from netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[from]--; p.by[from] == 0 {
		delete(p.by, from)
	}
}
