package ordered

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Requests for ordered sequences are forwarded to the owner. Those that wait for one lane share a request to it, unless
// they ask for too many values together.

// forwarding has the requests of one section that a node forwards. A node that was asked goes through these states
// until it answers:
//
//  1. asked: flight has what was sent to it.
//  2. slow: slowAfter has passed, or slowTaker. The next round doubts it. A failed connection, an unknown outcome, or a
//     refusal for want of the ownership does so at once, and makes Round read the record.
//  3. doubted: its ownership is the suspect or, if the record named no owner, its address is avoided. Nothing more is
//     sent to it, and the queue waits for a round.
//  4. The record says how it goes on. The owner has renewed: it is no suspect any more, and is asked again when the
//     flight has ended. The record is the same: this node waits for the lease to end. The node that was asked has
//     become the owner: it is the new suspect. A third node has: the flight ends, and the queue goes to that one. This
//     node has: the flight ends.
type forwarding struct {
	queue []mode.Request
	// sending: a goroutine forwards the queue. flight has the requests that it has sent, nil for none.
	sending bool
	flight  *flight
	// suspect is an ownership whose owner seems to be dead, and doubtedFor why. The node waits until it may take over
	// from that owner.
	suspect    string
	doubtedFor error
	// avoided is a node that could not take the section, until a time.
	avoided      string
	avoidedUntil int64
	values       int64  // that other nodes have given
	answered     string // the node that has last given some
}

// slowAfter is the time after which an owner that does not answer seems to be dead, and slowTaker that for a node that
// should take a section which has no owner.
const (
	slowAfter = 500 * time.Millisecond
	slowTaker = 2 * time.Second
)

var (
	errSilent     = errors.New("it does not answer")
	errOwnAddress = errors.New("this node has the same address. Each node needs one at which the others reach it")
)

func (p *forwarding) avoids(address string, now int64) bool {
	return address == p.avoided && now < p.avoidedUntil
}

// cancelFlight ends the requests that were forwarded and are not answered in time, because this node is the owner now.
func (p *forwarding) cancelFlight() {
	p.flight.doubted = true
	p.flight.cancel()
}

// leaveBehind makes a doubted flight go by the present owner, that of r. If the node that was asked has become the
// owner, the flight and the suspect get its ownership. If a third node has, leaveBehind ends the flight, so that the
// requests that wait behind it can be sent to that node.
func (p *forwarding) leaveBehind(r *record.Record) {
	switch f := p.flight; {
	case !p.doubted() || r.Owner == "" || r.Owner == f.ownership:
	case r.Address == f.address:
		p.suspect, f.ownership = r.Owner, r.Owner
	default:
		f.cancel()
	}
}

// doubted reports whether requests have not been answered in time, and may never be.
func (p *forwarding) doubted() bool { return p.flight != nil && p.flight.doubted }

// slowAt returns when Round must look whether a node has answered, 0 if it need not.
func (p *forwarding) slowAt() int64 {
	if p.flight == nil || p.flight.doubted {
		return 0
	}
	return p.flight.slowAt
}

// slow reports whether a node does not answer in time, and is not doubted yet.
func (s *Section) slow(now int64) bool {
	at := s.forwarding.slowAt()
	return at != 0 && now >= at
}

// doubt notes that a node has not answered as the owner. If the owner remains the same, this node waits until it may
// take over from that owner. The queue goes back to Waiting, where a round finds it. With reread, doubt makes Round
// read who is the owner now.
func (s *Section) doubt(f *flight, why error, reread bool) {
	p := &s.forwarding
	f.doubted, p.doubtedFor = true, why
	if f.ownership == "" {
		p.avoided, p.avoidedUntil = f.address, s.shared.Now()+int64(mode.Patience)
	} else {
		p.suspect = f.ownership
	}
	s.Waiting, p.queue = append(s.Waiting, p.queue...), nil
	if reread {
		s.reread()
	}
}

// ownedByAnother reports whether the last known owner is another node, or an earlier process of this one.
func (s *Section) ownedByAnother() bool {
	return s.Known.Owner != "" && s.Known.Owner != s.lease.ownership && s.Known.Owner != s.lastEnded
}

// target returns the address of the node that should answer requests. It is "" if this node should, or if it can ask
// none: the owner is suspect or has no address, the node that should take the section is avoided, or this node forwards
// nothing or has not joined a cluster.
func (s *Section) target(now int64) string {
	p, address := &s.forwarding, s.Known.Address
	switch {
	case s.shared.Forward == nil, s.shared.cluster.Load() == nil:
		return ""
	case s.Known.Owner == "":
		address = s.shared.preferredAddress(s.Name)
		if p.avoids(address, now) {
			return ""
		}
	case !s.ownedByAnother(), s.Known.Owner == p.suspect:
		return ""
	}
	if address == s.shared.own {
		return ""
	}
	return address
}

// forward makes a request wait until the owner has answered it.
func (s *Section) forward(r mode.Request, now int64, to []worker.Run) ([]worker.Run, bool, error) {
	if refusal := s.Oversized(r.N); refusal != nil {
		return to, false, refusal
	}
	s.NoteWaiting(r, now)
	r.Name = append([]byte(nil), r.Name...) // the caller may change it
	p := &s.forwarding
	p.queue = append(p.queue, r)
	if !p.sending {
		p.sending = true
		s.shared.Beside(s.forwardQueue)
	}
	return to, false, sequence.ErrPending
}

// forwardQueue forwards the queue until it is empty, all that is in it at a time.
func (s *Section) forwardQueue() {
	for {
		batch, f := s.nextBatch()
		if f == nil {
			mode.WakeAll(batch)
			return
		}
		lanes := byLane(batch)
		s.shared.Each(len(lanes), func(k int) { s.ask(f, lanes[k]) })
		f.cancel()
	}
}

// ask sends one request for the requests of a lane. If that is too large, ask sends one for each, until the ceiling is
// reached.
func (s *Section) ask(f *flight, some []mode.Request) {
	got, err := s.askOnce(f, some)
	if len(some) == 1 || !tooLarge(replied(err)) {
		s.note(f, some, got, err)
		return
	}
	for k := range some {
		got, err := s.askOnce(f, some[k:k+1])
		if replied(err) == record.CeilingReached {
			s.note(f, some[k:], got, err)
			return
		}
		s.note(f, some[k:k+1], got, err)
	}
}

// askOnce sends one request for as many values as all these requests want.
func (s *Section) askOnce(f *flight, some []mode.Request) (Answer, error) {
	ask := f.ask
	ask.Name, ask.N = string(some[0].Name), total(some)
	return s.shared.Forward(f, ask)
}

// total returns how many values these requests want.
func total(some []mode.Request) (n int64) {
	for _, r := range some {
		n += r.N
	}
	return n
}

// replied returns the reason of a reply that is an error, "" if it has none.
func replied(err error) record.Reason {
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		return record.Reason(reply.Reason())
	}
	return ""
}

// note notes the outcome of a request to the owner, and wakes the requests that shared it. Those that get no result
// look at the series again.
func (s *Section) note(f *flight, some []mode.Request, got Answer, err error) {
	defer mode.WakeAll(some)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	p, ok := s.Values.Position(got.First)
	switch {
	case err != nil:
	case !f.ask.answeredBy(got.Ownership):
		err = errOtherOwner
	case !ok:
		err = errOtherMap
	}
	if err != nil {
		s.noteFailure(f, some, err)
		return
	}
	s.noteAnswer(f, some, p)
}

// noteAnswer gives the requests the positions from p on, which the node that was asked has issued.
func (s *Section) noteAnswer(f *flight, some []mode.Request, p int64) {
	if s.forwarding.suspect == f.ownership {
		s.forwarding.suspect = ""
	}
	if f.ownership == "" && s.forwarding.answered != f.address { // it owns the section now. Its lease counts if it dies
		s.reread()
	}
	s.forwarding.answered = f.address
	for _, r := range some {
		r.Wait.Result = &mode.Result{Values: s.Values, Block: positions.Block{First: p, End: p + r.N}}
		p += r.N
	}
}

// noteFailure gives the requests the error if it is final. Else it doubts the node that was asked.
func (s *Section) noteFailure(f *flight, some []mode.Request, err error) {
	reply, refused := errors.AsType[*ids.ReplyError](err)
	switch {
	case refused && (reply.Code == ids.NOTREADY && !final(record.Reason(reply.Reason())) || reply.Code == ids.WRONGNODE):
		s.doubt(f, err, true)
	case refused && RefusesThisNode(reply):
		fail(some, noOwner(s.Name, f.address, false, err))
	case refused:
		fail(some, err)
	case errors.Is(err, ErrNothingIssued):
		s.doubt(f, err, true)
	default:
		fail(some, unknownOwner(s.Name, f.address, total(some)))
		s.doubt(f, err, true)
	}
}

// tooLarge reports whether a smaller request may be answered.
func tooLarge(r record.Reason) bool {
	return r == record.TooMany || r == record.CeilingReached || r == record.Exhausted
}

// final reports whether a refusal of the owner is the answer for a client.
func final(r record.Reason) bool { return r == record.CeilingReached || r == record.Unknown }

// fail gives the requests an error as their result.
func fail(some []mode.Request, err error) {
	for _, r := range some {
		r.Wait.Result = &mode.Result{Err: err}
	}
}

// reread makes Round read the record.
func (s *Section) reread() {
	s.Stale, s.PausedUntil = true, 0
	s.Host.WakeAt(mode.AtOnce)
}

// flight is one batch of requests to the owner.
type flight struct {
	context.Context
	cancel             context.CancelFunc
	ask                Ask // without Name and N
	ownership, address string
	slowAt             int64 // when the node seems to be dead, ns of AtMost
	doubted            bool  // see doubt
}

// atOnce is Shared.Each. The last call needs no goroutine.
func atOnce(n int, f func(k int)) {
	var group sync.WaitGroup
	defer group.Wait()
	for k := range n - 1 {
		group.Go(func() { f(k) })
	}
	f(n - 1)
}

// nextBatch returns the requests to send. Without a flight they must look at the series again.
func (s *Section) nextBatch() (batch []mode.Request, f *flight) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	p, now := &s.forwarding, s.shared.Now()
	batch, p.queue, p.flight = p.queue, nil, nil
	address := ""
	if s.Issuing == mode.Issuing(s) && s.Known.Kind() == record.Sequence { // else the name has another life, or was deleted
		address = s.target(now)
	}
	if len(batch) == 0 || address == "" || s.Stale {
		p.sending = false
		return batch, nil
	}
	ctx, cancel := context.WithTimeout(s.shared.senders.ctx, mode.Patience)
	slow := slowAfter
	if s.Known.Owner == "" {
		slow = slowTaker
	}
	p.flight = &flight{
		Context: ctx, cancel: cancel, ownership: s.Known.Owner, address: address, slowAt: now + int64(slow),
		ask: Ask{
			Address: address, Cluster: *s.shared.cluster.Load(),
			Of: sequence.Ownership{ID: s.Known.ID, Owner: s.Known.Owner, Term: s.Known.Term},
		},
	}
	s.Host.WakeAt(p.flight.slowAt)
	return batch, p.flight
}

// maxForward is the most positions that one request to the owner asks for.
const maxForward = 1_000_000

// byLane divides requests into those that share a request to the owner.
func byLane(batch []mode.Request) (all [][]mode.Request) {
	last := make(map[int]int) // by lane
	sums := make(map[int]int64)
	for _, r := range batch {
		k, ok := last[r.Lane]
		if !ok || sums[r.Lane]+r.N > maxForward {
			k = len(all)
			all, last[r.Lane], sums[r.Lane] = append(all, nil), k, 0
		}
		all[k] = append(all[k], r)
		sums[r.Lane] += r.N
	}
	return all
}
