package lineproto

import (
	"context"
	"sync"
	"sync/atomic"
)

// This file decides how connections share the IDs that can be made. Requests for a few
// IDs are answered when they are read. While IDs are scarce, connections that ask for
// more wait in a queue. A connection takes a slice of IDs in its turn, and then waits
// again behind the others. So a connection that asks for 10,000 IDs, or asks a thousand
// times, gets no more IDs in a round than its neighbours.
//
// An event loop gives turns to its own connections. Connections with goroutines hand one turn on to each other.

const (
	// tinyOrder is the most IDs of a request that is answered when it is read, even
	// while others wait.
	tinyOrder = 16
	// smallOrder is the most IDs of a request that one turn answers. Such a request is
	// never refused: all connections may wait for that many at the same time.
	smallOrder = maxBare
	// roundOfIDs is how many IDs the waiters share in a round while IDs are scarce. The
	// usual layout makes so many in a millisecond. A turn of fewer than minSlice IDs
	// costs more than the IDs. A turn of more than maxSlice would delay the others.
	roundOfIDs = 4096
	minSlice   = 64
	maxSlice   = 1024
	// plenty is more IDs than most nodes make in a tick.
	plenty = 16 * roundOfIDs
	// passedBy is how many turns others get before a queue that waits behind them
	// gets one.
	passedBy = 7
)

// rank is the queue that a connection waits in. Lower ranks get their turns first, but
// no queue waits for ever: see passedBy.
type rank uint8

const (
	// rankOther is for work other than IDs.
	rankOther rank = iota
	// rankTiny is for requests for a few IDs, if they have to wait at all.
	rankTiny
	// rankSmall is for requests that one turn answers.
	rankSmall
	// rankLarge is for requests that take several turns.
	rankLarge
	// rankLeaving is for large requests of clients that have stopped sending. Most such
	// clients are gone, and the first reply shows which.
	rankLeaving

	numRanks = iota
)

// rankOf returns the rank of a connection that lacks so many IDs. lacks is 0 if the
// connection has other work.
func rankOf(lacks int, halfClosed bool) rank {
	switch {
	case lacks == 0:
		return rankOther
	case lacks <= tinyOrder:
		return rankTiny
	case lacks <= smallOrder:
		return rankSmall
	case halfClosed:
		return rankLeaving
	}
	return rankLarge
}

// turnSize returns how many IDs a connection may take in its turn. lacks is how many it
// lacks, 0 if it has other work. waiting counts the connections that wait, with itself.
func turnSize(lacks, waiting int, scarce bool) int {
	switch {
	case lacks > 0 && lacks <= smallOrder:
		return lacks
	case !scarce:
		return maxSlice
	}
	return min(max(roundOfIDs/waiting, minSlice), maxSlice)
}

// admits reports whether a request for n IDs is accepted while clients wait for backlog
// IDs. ceiling is how many IDs are made in a second, 0 for any number. Clients that
// have stopped sending may be gone, so their requests may fill only half of it.
func admits(backlog, n, ceiling int64, halfClosed bool) bool {
	if halfClosed {
		ceiling /= 2
	}
	return n <= smallOrder || backlog == 0 || ceiling == 0 || backlog+n <= ceiling
}

// turns gives the turn to one waiter after the other. It belongs to an event loop, or all goroutines of a Server share
// it. Go's scheduler alone would give the IDs of a new tick to goroutines that have just had some. The zero value is
// ready.
type turns struct {
	// heldBack is the part of maxSlice IDs that a request may not take at once, when it is read. 0: IDs are plenty.
	heldBack atomic.Int64
	total    atomic.Int64 // waiters

	mu     sync.Mutex // guards the rest, and the places
	queues [numRanks]queue
	passed [numRanks]int // turns of earlier queues while it waited
	taken  bool          // a waiter has the turn
	// scarce is set when a reservation has waited for a tick. It is cleared when a turn ends and
	// nobody waits for the next one, and after plenty IDs without such a wait.
	scarce bool
	since  int // IDs since the last wait
}

// place is a waiter's place among turns. The zero value is in no queue.
type place struct {
	owner   waker
	lacks   int
	allowed int // IDs that the owner may take in its turn. 0: it does not have the turn
	in      *queue

	prev, next *place
}

// queue is a doubly linked list, so that a connection that is closed leaves it at
// once.
type queue struct {
	first, last *place
	length      int
}

// atOnce returns how many IDs a connection may take when its request is read. For more
// it has to wait for its turn.
func (t *turns) atOnce() int { return maxSlice - int(t.heldBack.Load()) }

// unlock sets heldBack by the other fields, and unlocks mu.
func (t *turns) unlock() {
	heldBack := 0
	switch {
	case t.scarce && (t.taken || t.queues[rankTiny].length > 0):
		heldBack = maxSlice // the others were first
	case t.scarce:
		heldBack = maxSlice - tinyOrder // only tiny orders do not wait
	}
	t.heldBack.Store(int64(heldBack))
	t.mu.Unlock()
}

// note counts IDs that were taken, and whether that has waited for a tick.
func (t *turns) note(took int, waited bool) {
	if !waited && t.heldBack.Load() == 0 {
		return // IDs are plenty
	}
	t.mu.Lock()
	defer t.unlock()
	t.noteLocked(took, waited)
}

// noteLocked does what note does. mu is held.
func (t *turns) noteLocked(took int, waited bool) {
	if t.since += took; waited {
		t.scarce, t.since = true, 0
	} else if t.since >= plenty {
		t.scarce = false
	}
}

// waiting returns how many places wait in the queues before a rank.
func (t *turns) waiting(before rank) int {
	if t.total.Load() == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for i := range t.queues[:before] {
		n += t.queues[i].length
	}
	return n
}

// join puts p at the end of a queue, unless p waits already. lacks is how many IDs it lacks.
func (t *turns) join(p *place, lacks int, halfClosed bool) {
	t.mu.Lock()
	defer t.unlock()
	t.joinLocked(p, lacks, rankOf(lacks, halfClosed))
}

// moveToLeaving moves p to the queue of rankLeaving if p waits with a large request.
func (t *turns) moveToLeaving(p *place) {
	t.mu.Lock()
	defer t.unlock()
	if p.in == &t.queues[rankLarge] {
		t.quitLocked(p)
		t.joinLocked(p, p.lacks, rankLeaving)
	}
}

// quit takes p out of its queue, if it is in one.
func (t *turns) quit(p *place) {
	t.mu.Lock()
	defer t.unlock()
	t.quitLocked(p)
}

// next begins the turn of the next waiter among the queues with a rank below before. It returns nil if there is none. A
// queue that was passed by passedBy times goes first, the one with the lowest priority if there are
// several. Otherwise the first queue that is not empty goes.
func (t *turns) next(before rank) *place {
	if t.total.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.unlock()
	return t.nextLocked(before)
}

// nextLocked does what next does. mu is held.
func (t *turns) nextLocked(before rank) *place {
	chosen := -1
	for i := range t.queues[:before] {
		if t.queues[i].length > 0 && (chosen < 0 || t.passed[i] >= passedBy) {
			chosen = i
		}
	}
	if chosen < 0 {
		return nil
	}
	for i := chosen + 1; i < int(before); i++ {
		if t.queues[i].length > 0 {
			t.passed[i]++
		}
	}
	t.passed[chosen] = 0
	p := t.queues[chosen].first
	p.allowed = turnSize(p.lacks, int(t.total.Load()), t.scarce)
	t.quitLocked(p)
	t.taken = true
	return p
}

// done ends the turn of p, in which took IDs were taken. waited is set if there were none for a tick.
func (t *turns) done(p *place, took int, waited bool) {
	t.mu.Lock()
	defer t.unlock()
	t.doneLocked(p, took, waited)
}

// doneLocked does what done does. mu is held.
func (t *turns) doneLocked(p *place, took int, waited bool) {
	t.noteLocked(took, waited)
	t.taken, p.allowed = false, 0
	t.scarce = t.scarce && t.total.Load() > 0
}

// signal is the waiter of a goroutine, which receives from it. Its capacity is 1.
type signal chan struct{}

func (s signal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// acquire waits for the turn of p, and sets p.allowed. If it returns an error, it is that of ctx. Otherwise the caller
// must call release. woken may get more signals than that of the turn.
func (t *turns) acquire(ctx context.Context, p *place, woken signal, lacks int, halfClosed bool) error {
	p.owner = woken
	t.mu.Lock()
	defer t.unlock()
	t.joinLocked(p, lacks, rankOf(lacks, halfClosed))
	t.handOn()
	for p.allowed == 0 {
		t.unlock()
		select {
		case <-woken:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if err := ctx.Err(); err != nil {
			if t.quitLocked(p); p.allowed > 0 {
				t.doneLocked(p, 0, false)
				t.handOn()
			}
			return err
		}
	}
	return nil
}

// release ends the turn of p, in which took IDs were taken, and hands it on.
func (t *turns) release(p *place, took int) {
	t.mu.Lock()
	defer t.unlock()
	t.doneLocked(p, took, false)
	t.handOn()
}

// handOn begins the turn of the next waiter, unless another one has the turn. mu is held.
func (t *turns) handOn() {
	if t.taken {
		return
	}
	if p := t.nextLocked(numRanks); p != nil {
		p.owner.wake()
	}
}

// joinLocked appends p to the queue of a rank, unless p is in a queue. mu is held.
func (t *turns) joinLocked(p *place, lacks int, r rank) {
	if p.in != nil {
		return
	}
	l := &t.queues[r]
	p.lacks, p.in, p.prev = lacks, l, l.last
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.length++
	t.total.Add(1)
}

// quitLocked does what quit does. mu is held.
func (t *turns) quitLocked(p *place) {
	l := p.in
	if l == nil {
		return
	}
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	l.length--
	t.total.Add(-1)
	p.in, p.prev, p.next = nil, nil, nil
}
