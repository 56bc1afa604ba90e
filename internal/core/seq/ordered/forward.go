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

// forwarding has the requests for one section that this node forwards, and what it knows of the nodes that it asks. A
// node that was asked goes through these states until it answers:
//
//  1. asked: flight has the requests that were sent to it.
//  2. slow: slowAfter has passed, or slowTaker. The next round doubts the node. After a failed connection, an unknown
//     outcome, or a refusal because it is not the owner, it is doubted at once, and Round reads the record.
//  3. doubted: its nonce is the suspect or, if the record named no owner, its address is avoided. The other lanes
//     of the flight may still ask it. It gets no further flight, and the queue waits for a round.
//  4. The record decides what follows. If the owner has renewed, it is no suspect any more, and is asked again when the
//     flight has ended. If the record is the same, this node waits for the lease to end. If the node that was asked has
//     become the owner, it is the new suspect. If a third node has, the flight ends, and the queue goes to that one. If
//     this node has, the flight ends.
type forwarding struct {
	queue []mode.Request // not sent yet
	// sending: a goroutine forwards the queue. flight is the batch that it has sent and is not answered, nil for none.
	sending bool
	flight  *flight
	// suspect is the nonce of an owner that seems to be dead, "" for none, and doubtedFor says why. This node waits
	// until it may take over from that owner.
	suspect    string
	doubtedFor error
	// avoided is the address of a node that could not take the section. It is not asked until avoidedUntil, ns of
	// AtMost.
	avoided      string
	avoidedUntil int64
	// valuesFromOthers counts the values that other nodes have issued for this one. lastAnswerer is the address of the
	// node that has last done so, "" when the record names the owner.
	valuesFromOthers int64
	lastAnswerer     string
}

// slowAfter is the time after which an owner that does not answer seems to be dead, and slowTaker that for a node that
// should take a section which has no owner.
const (
	slowAfter = 500 * time.Millisecond
	slowTaker = 2 * time.Second
)

var (
	errSilent     = errors.New("it does not answer")
	errOwnAddress = errors.New("this node has the same address: its last process owned the sequence until a moment ago, " +
		"or another node advertises it, too")
)

func (fw *forwarding) avoids(address string, now int64) bool {
	return address == fw.avoided && now < fw.avoidedUntil
}

// cancelFlight ends the requests that were forwarded and are not answered in time, because this node is the owner now.
func (fw *forwarding) cancelFlight() {
	fw.flight.doubted = true
	fw.flight.cancel()
}

// followOwner makes a doubted flight follow the present owner, which r names. If the node that was asked has become the
// owner, followOwner notes its nonce in the flight and as the suspect. If a third node has, followOwner ends the
// flight, so that the requests that wait behind it can be sent to that node.
func (fw *forwarding) followOwner(r *record.Record) {
	switch f := fw.flight; {
	case !fw.doubted() || r.Owner == "" || r.Owner == f.owner:
	case r.Address == f.address:
		fw.suspect, f.owner = r.Owner, r.Owner
	default:
		f.cancel()
	}
}

// doubted reports whether requests have not been answered in time, and may never be.
func (fw *forwarding) doubted() bool { return fw.flight != nil && fw.flight.doubted }

// slowAt returns when Round must look whether a node has answered, 0 if it need not.
func (fw *forwarding) slowAt() int64 {
	if fw.flight == nil || fw.flight.doubted {
		return 0
	}
	return fw.flight.slowAt
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
	fw := &s.forwarding
	f.doubted, fw.doubtedFor = true, why
	if f.owner == "" {
		fw.avoided, fw.avoidedUntil = f.address, s.shared.Now()+int64(mode.Patience)
	} else {
		fw.suspect = f.owner
	}
	s.Waiting, fw.queue = append(s.Waiting, fw.queue...), nil
	if reread {
		s.reread()
	}
}

// ownedByAnother reports whether the record names an owner that is not this process: another node, or an earlier
// process of this one.
func (s *Section) ownedByAnother() bool {
	return s.Known.Owner != "" && s.Known.Owner != s.lease.owner && s.Known.Owner != s.lastEnded
}

// target returns the address of the node that should answer requests. It is "" if this node should, or if this node can
// ask no other one: the owner is suspect or has no address, the node that should take the section is avoided, or this
// node forwards nothing or has not joined a cluster.
func (s *Section) target(now int64) string {
	fw, address := &s.forwarding, s.Known.Address
	switch {
	case s.shared.Forward == nil, s.shared.cluster.Load() == nil:
		return ""
	case s.Known.Owner == "":
		address = s.shared.preferredAddress(s.Name)
		if fw.avoids(address, now) {
			return ""
		}
	case !s.ownedByAnother(), s.Known.Owner == fw.suspect:
		return ""
	}
	if address == s.shared.ownAddress {
		return ""
	}
	return address
}

// forward queues a request for the owner, and makes it wait for the answer.
func (s *Section) forward(r mode.Request, now int64, to []worker.Run) ([]worker.Run, bool, error) {
	if refusal := s.Oversized(r.N); refusal != nil {
		return to, false, refusal
	}
	s.NoteWaiting(r, now)
	r.Name = append([]byte(nil), r.Name...) // the caller may change it
	fw := &s.forwarding
	fw.queue = append(fw.queue, r)
	if !fw.sending {
		fw.sending = true
		s.shared.Go(s.forwardQueue)
	}
	return to, false, sequence.ErrPending
}

// forwardQueue forwards the queue until it is empty: all that is in it together, and then what has come since.
func (s *Section) forwardQueue() {
	for {
		batch, f := s.nextBatch()
		if f == nil {
			mode.WakeAll(batch)
			return
		}
		lanes := byLane(batch)
		s.shared.Parallel(len(lanes), func(k int) { s.ask(f, lanes[k]) })
		f.cancel()
	}
}

// ask sends one request to the owner for all requests of a lane. If the owner refuses that as too large, ask sends one
// for each, until the ceiling is reached.
func (s *Section) ask(f *flight, requests []mode.Request) {
	got, err := s.askOnce(f, requests)
	if len(requests) == 1 || !tooLarge(reasonOf(err)) {
		s.noteOutcome(f, requests, got, err)
		return
	}
	for k := range requests {
		got, err := s.askOnce(f, requests[k:k+1])
		if reasonOf(err) == record.CeilingReached {
			s.noteOutcome(f, requests[k:], got, err)
			return
		}
		s.noteOutcome(f, requests[k:k+1], got, err)
	}
}

// askOnce sends one request for as many values as all these requests want.
func (s *Section) askOnce(f *flight, requests []mode.Request) (Answer, error) {
	request := f.request
	request.Name, request.N = string(requests[0].Name), total(requests)
	return s.shared.Forward(f, request)
}

// total returns how many values these requests want.
func total(requests []mode.Request) (n int64) {
	for _, r := range requests {
		n += r.N
	}
	return n
}

// reasonOf returns the reason of a reply that is an error, "" if it has none.
func reasonOf(err error) record.Reason {
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		return record.Reason(reply.Reason())
	}
	return ""
}

// noteOutcome notes the outcome of a request to the owner, and wakes the requests that shared it. Those that get no
// result look at the series again.
func (s *Section) noteOutcome(f *flight, requests []mode.Request, got Answer, err error) {
	defer mode.WakeAll(requests)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	p, ok := s.Values.Position(got.First)
	switch {
	case err != nil:
	case !f.request.acceptsOwner(got.Owner):
		err = errOtherOwner
	case !ok:
		err = errForeignValue
	}
	if err != nil {
		s.noteFailure(f, requests, err)
		return
	}
	s.noteAnswer(f, requests, p)
}

// noteAnswer gives the requests the positions from p on, which the node that was asked has issued.
func (s *Section) noteAnswer(f *flight, requests []mode.Request, p int64) {
	fw := &s.forwarding
	if fw.suspect == f.owner {
		fw.suspect = ""
	}
	if f.owner == "" && fw.lastAnswerer != f.address { // it is the owner now, whose lease counts if it dies
		s.reread()
	}
	fw.lastAnswerer = f.address
	for _, r := range requests {
		r.Wait.Result = &mode.Result{Values: s.Values, Block: positions.Block{First: p, End: p + r.N}}
		p += r.N
	}
}

// noteFailure gives the requests the error if it is final. Else it doubts the node that was asked.
func (s *Section) noteFailure(f *flight, requests []mode.Request, err error) {
	reply, refused := errors.AsType[*ids.ReplyError](err)
	switch {
	case refused && (reply.Code == ids.NOTREADY && !final(record.Reason(reply.Reason())) || reply.Code == ids.WRONGNODE):
		s.doubt(f, err, true)
	case refused && RefusesThisNode(reply):
		fail(requests, ownerUnreachable(s.Name, f.address, false, err))
	case refused:
		fail(requests, err)
	case errors.Is(err, ErrNothingIssued):
		s.doubt(f, err, true)
	default:
		fail(requests, outcomeUnknown(s.Name, f.address, total(requests)))
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
func fail(requests []mode.Request, err error) {
	for _, r := range requests {
		r.Wait.Result = &mode.Result{Err: err}
	}
}

// reread makes Round read the record.
func (s *Section) reread() {
	s.Stale, s.PausedUntil = true, 0
	s.Host.WakeAt(mode.AtOnce)
}

// flight is one batch of requests to one node. Its context is that of the calls.
type flight struct {
	context.Context
	cancel  context.CancelFunc
	request PeerRequest // without Name and N
	// owner is the nonce of the owner that was asked, "" if there was none. address is that of the node.
	owner, address string
	slowAt         int64 // when the node seems to be dead, ns of AtMost
	doubted        bool  // see doubt
}

// parallel is Shared.Parallel. The last call needs no goroutine.
func parallel(n int, f func(k int)) {
	var group sync.WaitGroup
	defer group.Wait()
	for k := range n - 1 {
		group.Go(func() { f(k) })
	}
	f(n - 1)
}

// nextBatch takes all requests from the queue, and returns them with the flight to send them in. Without a flight, the
// caller must wake them, so that they look at the series again.
func (s *Section) nextBatch() (batch []mode.Request, f *flight) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	fw, now := &s.forwarding, s.shared.Now()
	batch, fw.queue, fw.flight = fw.queue, nil, nil
	address := ""
	if s.Issuing == mode.Issuing(s) && s.Known.Kind() == record.Sequence { // else the name has another life, or was deleted
		address = s.target(now)
	}
	if len(batch) == 0 || address == "" || s.Stale {
		fw.sending = false
		return batch, nil
	}
	ctx, cancel := context.WithTimeout(s.shared.senders.ctx, mode.Patience)
	slow := slowAfter
	if s.Known.Owner == "" {
		slow = slowTaker
	}
	fw.flight = &flight{
		Context: ctx, cancel: cancel, owner: s.Known.Owner, address: address, slowAt: now + int64(slow),
		request: PeerRequest{
			Address: address, Cluster: *s.shared.cluster.Load(),
			Ownership: sequence.Ownership{ID: s.Known.ID, Owner: s.Known.Owner, Term: s.Known.Term},
		},
	}
	s.Host.WakeAt(fw.flight.slowAt)
	return batch, fw.flight
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
