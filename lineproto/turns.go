package lineproto

// This file decides how connections share the IDs that can be made. Requests for a few
// IDs are answered when they are read. While IDs are scarce, connections that ask for
// more wait in a queue. A connection takes a slice of IDs in its turn, and then waits
// again behind the others. So a connection that asks for 10,000 IDs, or asks a thousand
// times, gets no more IDs in a round than its neighbours.
//
// The decisions do no I/O, hold no lock and read no clock.

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
	// passedBy is how many turns others get before a line that waits behind them
	// gets one.
	passedBy = 7
)

// rank is the line that a connection waits in. Lower ranks get their turns first, but
// no line waits for ever: see passedBy.
type rank uint8

const (
	// other is for work other than IDs.
	other rank = iota
	// tiny is for requests for a few IDs, if they have to wait at all.
	tiny
	// small is for requests that one turn answers.
	small
	// large is for requests that take several turns.
	large
	// leaving is for large requests of clients that have stopped sending. Most such
	// clients are gone, and the first reply shows which.
	leaving

	numRanks = iota
)

// rankOf returns the rank of a connection that lacks so many IDs. lacks is 0 if the
// connection has other work.
func rankOf(lacks int, halfClosed bool) rank {
	switch {
	case lacks == 0:
		return other
	case lacks <= tinyOrder:
		return tiny
	case lacks <= smallOrder:
		return small
	case halfClosed:
		return leaving
	}
	return large
}

// slice returns how many IDs a connection may take in its turn. lacks is how many it
// lacks, 0 if it has other work. waiting counts the connections that wait, with itself.
func slice(lacks, waiting int, scarce bool) int {
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

// turns is the queue of the waiters. W is the type of a waiter.
type turns[W any] struct {
	lines  [numRanks]line[W]
	passed [numRanks]int // turns of earlier lines while it waited
	// scarce is set when a reservation has waited for a tick. It is cleared when
	// nobody waits for a turn, and after plenty IDs without such a wait.
	scarce bool
	since  int // IDs since the last wait
}

// place is an owner's place in a queue. The zero value is in none.
type place[W any] struct {
	owner      W
	in         *line[W]
	prev, next *place[W]
}

// line is a doubly linked list, so that a connection that is closed leaves it at
// once.
type line[W any] struct {
	first, last *place[W]
	length      int
}

// waiting returns how many places wait in the lines before a rank.
func (t *turns[W]) waiting(before rank) (n int) {
	for i := range t.lines[:before] {
		n += t.lines[i].length
	}
	return n
}

// atOnce returns how many IDs a connection may take when its request is read. For more
// it has to wait for its turn. taken is how many IDs other connections have had in this
// way since turns were last given.
func (t *turns[W]) atOnce(taken int) int {
	switch {
	case t.lines[tiny].length > 0:
		return 0 // the others were first
	case t.scarce && (t.waiting(numRanks) > 0 || taken >= roundOfIDs):
		return tinyOrder
	}
	return maxSlice
}

// note counts the IDs of a turn, and whether it has waited for a tick.
func (t *turns[W]) note(took int, waited bool) {
	if t.since += took; waited {
		t.scarce, t.since = true, 0
	} else if t.since >= plenty {
		t.scarce = false
	}
}

// join puts p at the end of a line, unless p waits already.
func (t *turns[W]) join(p *place[W], r rank) {
	if p.in == nil {
		t.lines[r].append(p)
	}
}

// part moves p to the line leaving, if p waits with a large request.
func (t *turns[W]) part(p *place[W]) {
	if p.in == &t.lines[large] {
		p.quit()
		t.lines[leaving].append(p)
	}
}

// next removes and returns the next waiter among the lines with a rank below before. A line
// that was passed by passedBy times goes first, the one with the lowest priority if there are
// several. Otherwise the first line that is not empty goes. If no line has a waiter, next
// clears scarce.
func (t *turns[W]) next(before rank) (p *place[W], ok bool) {
	chosen := -1
	for i := range t.lines[:before] {
		if t.lines[i].length > 0 && (chosen < 0 || t.passed[i] >= passedBy) {
			chosen = i
		}
	}
	if chosen < 0 {
		t.scarce = t.scarce && t.waiting(numRanks) > 0
		return nil, false
	}
	for i := chosen + 1; i < int(before); i++ {
		if t.lines[i].length > 0 {
			t.passed[i]++
		}
	}
	t.passed[chosen] = 0
	p = t.lines[chosen].first
	p.quit()
	return p, true
}

func (l *line[W]) append(p *place[W]) {
	p.in, p.prev = l, l.last
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.length++
}

// quit takes p out of its queue, if it is in one.
func (p *place[W]) quit() {
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
	p.in, p.prev, p.next = nil, nil, nil
}
