package admin

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxAnswers is how many requests are answered at once, probes not counted. It is low,
	// so that a node with two cores has time for probes. Further requests wait for up to
	// answersWait.
	maxAnswers  = 4
	answersWait = time.Second
	// maxWaits is how many requests may wait at once for something slow, such as
	// ZooKeeper.
	maxWaits = 8
)

// places limits how many requests do one thing at the same time. One address may have
// half of the places.
type places struct {
	// wait is how long take waits for a place.
	wait time.Duration
	all  chan struct{} // capacity: the number of places

	mu sync.Mutex // guards by
	by map[netip.Prefix]*share
}

// share is the places of one address.
type share struct {
	places chan struct{}
	users  int // with or waiting for a place; places.mu guards it
}

func newPlaces(most int, wait time.Duration) *places {
	return &places{wait: wait, all: make(chan struct{}, most), by: map[netip.Prefix]*share{}}
}

// limits returns how many places there are, and how many for one address.
func (p *places) limits() (all, one int) { return cap(p.all), cap(p.all) / 2 }

// take takes a place, which the caller gives back by calling leave. leave is nil if no
// place became free in time.
func (p *places) take(ctx context.Context, from netip.Prefix) (leave func()) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	s := p.join(from)
	if !enter(ctx, s.places) {
		p.part(from)
		return nil
	}
	if !enter(ctx, p.all) {
		<-s.places
		p.part(from)
		return nil
	}
	return func() {
		<-p.all
		<-s.places
		p.part(from)
	}
}

// enter sends on room, and reports whether it could before the context ended.
func enter(ctx context.Context, room chan struct{}) bool {
	select {
	case room <- struct{}{}:
		return true
	default:
	}
	select {
	case room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// join returns the share of an address. The share exists until part has been called once
// for each join.
func (p *places) join(from netip.Prefix) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.by[from]
	if s == nil {
		_, one := p.limits()
		s = &share{places: make(chan struct{}, one)}
		p.by[from] = s
	}
	s.users++
	return s
}

func (p *places) part(from netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by[from].users--; p.by[from].users == 0 {
		delete(p.by, from)
	}
}
