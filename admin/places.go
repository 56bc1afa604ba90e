package admin

import (
	"context"
	"hash/crc32"
	"net/netip"
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
// half of the places. Addresses with the same hash share theirs.
type places struct {
	wait time.Duration      // how long take waits for a place
	all  chan struct{}      // capacity: the number of places
	of   [256]chan struct{} // by the hash of the address
}

func newPlaces(most int, wait time.Duration) *places {
	p := &places{wait: wait, all: make(chan struct{}, most)}
	for i := range p.of {
		p.of[i] = make(chan struct{}, most/2)
	}
	return p
}

// take takes a place, which the caller gives back by calling leave. leave is nil if no
// place became free in time.
func (p *places) take(ctx context.Context, from netip.Prefix) (leave func()) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	own := p.of[crc32.ChecksumIEEE(from.Addr().AsSlice())%uint32(len(p.of))]
	if !enter(ctx, own) {
		return nil
	}
	if !enter(ctx, p.all) {
		<-own
		return nil
	}
	return func() {
		<-p.all
		<-own
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
