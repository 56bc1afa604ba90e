package coordinator

import (
	"context"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// PeerWait notes which peers have said that they have compared their records, in the present ZooKeeper session and
// incarnation of this node (C14). Those are the records of named sequences that the peer knows: it compares them with
// ZooKeeper's, and restores what ZooKeeper has lost.
//
// A chain shows that ZooKeeper has lost nothing of what this node wrote. It does not show whether ZooKeeper has lost
// what others wrote since this node's last heartbeat: values that they took, for example. They notice that themselves
// when they compare the records that they know. So before a node relies on ZooKeeper in a new session, it reads the
// slots of its peers, again and again, and waits for these:
//
//   - A holder that had reported shortly before, until it says in its slot that it has compared its records, or has
//     stopped. If it says nothing in this session, the node waits for the confirming time.
//   - A holder that still compares its records, for as long as it says so at its heartbeats. If it says nothing new
//     for the confirming time, the node waits no longer.
//
// Live locks do not count: the lock of a peer that reconnects, or whose session has expired, is missing for a while.
//
// Outside of this package only the simulation of package seq uses PeerWait, FirstBeat and ReportWindow.
type PeerWait struct {
	first FirstBeat
	// unread are the workers whose slots this pass has yet to read, and waits those among the slots read that the node
	// waits for. The next pass reads them again.
	unread, waits []int
	// comparingZxid is the latest transaction in which a peer has said that it still compares its records. The node
	// read that at comparingAt, ns of the same clock as FirstBeat.Sent.
	comparingZxid, comparingAt int64
	// takes has the workers whose holders may take values of named sequences. read: each slot was read at least once.
	takes map[int]bool
	read  bool
	// over: the node waits for nobody any more.
	over bool
}

// FirstBeat is the first heartbeat that was acknowledged in a session and an incarnation.
type FirstBeat struct {
	Session int64 // 0: there was none yet
	// Zxid is the transaction of its write, Stamp the leader's time of that, and Clock the node's when it sent the
	// write, Unix ms.
	Zxid, Stamp, Clock int64
	// Sent is the time at which the node sent the write, in ns of timeguard.Elapsed.AtLeast.
	Sent int64
	// Chained: the node's chain is older than the confirming time.
	Chained bool
	// Window: a peer that has reported within this time before the write counts as running. See ReportWindow.
	Window time.Duration
	// Worker is the node's own, and Highest the highest slot that is known to have had a record.
	Worker, Highest int
}

// NewPeerWait returns a PeerWait that has read nothing yet.
func NewPeerWait(first FirstBeat) PeerWait {
	w := PeerWait{first: first, takes: make(map[int]bool)}
	for worker := range first.Highest + 1 {
		if worker != first.Worker {
			w.unread = append(w.unread, worker)
		}
	}
	w.over = len(w.unread) == 0
	w.read = w.over
	return w
}

// ReportWindow returns FirstBeat.Window. While the chain of a node goes on, its last report is at most two heartbeats
// old. A peer that can have lost something had reported within two heartbeats before that report, or since, and two
// heartbeats of a peer are at most the confirming time.
//
//mutant:c14-window-of-two-heartbeats by TestPeerWait -> func ReportWindow(confirm, heartbeat time.Duration) time.Duration { return 2 * heartbeat }
func ReportWindow(confirm, heartbeat time.Duration) time.Duration { return confirm + 2*heartbeat }

// begun reports whether a heartbeat was acknowledged in this session and incarnation. Before that there is nobody to
// wait for.
func (w *PeerWait) begun() bool { return w.first.Session != 0 }

// asked reports whether the node has read slots of peers, or need not.
func (w *PeerWait) asked() bool { return w.over || len(w.takes) > 0 }

// Over reports whether the node waits for nobody any more.
func (w *PeerWait) Over() bool { return w.over }

// Next returns the workers whose slots must be read now, readAtOnce at most.
func (w *PeerWait) Next() []int { return w.unread[:min(len(w.unread), readAtOnce)] }

// Note takes over the slots of the workers that Next returned, as they were read at now, in ns. It returns how many of
// their holders run or have run shortly before, and whether the pass has ended. The next pass must begin later.
func (w *PeerWait) Note(slots []store.Record, incarnation, now int64, confirm time.Duration) (running int, ended bool) {
	for i, r := range slots {
		worker, s := w.unread[i], parseSlot(r.Data)
		state, recent := w.stateOf(s, r, incarnation), writtenWithin(s, r, w.first.Stamp, w.first.Clock, w.first.Window)
		runs := state != nobody && recent
		w.takes[worker] = runs && s.Takes
		if runs {
			running++
		}
		if w.waitsFor(state, recent, r.Stat.Mzxid, now, int64(confirm)) {
			w.waits = append(w.waits, worker)
		}
	}
	if w.unread = w.unread[len(slots):]; len(w.unread) > 0 {
		return running, false
	}
	w.unread, w.waits, w.read = w.waits, nil, true
	w.over = len(w.unread) == 0
	return running, true
}

// waitsFor reports whether the node must read a slot again whose holder has shown this state in the transaction zxid.
// confirm is ns.
func (w *PeerWait) waitsFor(state peerState, recent bool, zxid, now, confirm int64) bool {
	switch state {
	case silent:
		// Scenario: ZooKeeper is away for an hour. Then it has older data, and no peer has reported within the window,
		// but each may know values that are missing there. After such a gap the node takes nothing for the confirming
		// time in any case, so it waits for each holder.
		//mutant:c14-window-after-a-gap by TestPeerWait -> return recent && now-w.first.Sent < confirm
		return (recent || !w.first.Chained) && now-w.first.Sent < confirm
	case compares:
		if zxid > w.comparingZxid {
			w.comparingZxid, w.comparingAt = zxid, now
		}
		//mutant:c14-comparing-peer-is-left by TestPeerWait -> return now-w.first.Sent < confirm
		return now-w.comparingAt < confirm
	}
	return false
}

// peerState says whether a peer has compared its records, as its slot shows to a node in a new session.
type peerState int

const (
	nobody   peerState = iota // nobody holds the worker, or its holder has stopped
	silent                    // its holder has said nothing in this session
	compares                  // its holder still compares its records
	compared                  // its holder has compared its records, or has none
)

// stateOf returns what a slot shows of its holder.
func (w *PeerWait) stateOf(s Slot, r store.Record, incarnation int64) peerState {
	switch {
	// Somebody else wrote the record, or it is lost. A holder may run that says nothing in it.
	case !r.Found, s.Term < 0, s.StandsIn, s.ReleasedBy != "":
		return silent
	case s.Node == "", s.Stopped, s.Released:
		return nobody
	//mutant:c14-word-from-before by TestPeerWait -> case false:
	case r.Stat.Mzxid <= w.first.Zxid:
		return silent
	//mutant:c14-word-before-comparing by TestPeerWait -> case true:
	case s.Incarnation == incarnation && s.hasCompared(incarnation):
		return compared
	}
	return compares
}

// writtenWithin reports whether a slot was written at most a time before a moment, or since. It goes by the leader's
// clock and by those of the nodes, and reports true if either shows that, because any of these clocks may have leapt.
// The moment is stamp by the leader's clock and clock by ours, Unix ms. For a PeerWait it is that of the first
// heartbeat, in Roster the present one. A missing record counts as written: its holder may run.
func writtenWithin(s Slot, r store.Record, stamp, clock int64, within time.Duration) bool {
	//mutant:c14-silent-peer-is-left by TestPeerWait -> window := int64(-1)
	window := within.Milliseconds()
	ago := clock - s.ReportedClock
	return !r.Found || stamp-r.Stat.Mtime <= window || max(ago, -ago) <= window
}

// beginPeerWait begins a PeerWait if this heartbeat is the first one in its session and incarnation. after is the stat
// that its write has given the record.
func (h *holderState) beginPeerWait(after store.Stat, e evidence, confirm time.Duration) {
	//mutant:c14-word-of-the-last-session by TestPeerWaitBeginsWithTheSession -> if h.peerWait.first.Session != 0 {
	if h.peerWait.first.Session == e.session {
		return
	}
	h.peerWait = NewPeerWait(FirstBeat{
		Session: e.session, Zxid: after.Mzxid, Stamp: after.Mtime, Clock: e.now, Sent: e.at.Least,
		Chained: h.Chain.Unbroken(e.at, e.interval) >= confirm, Window: ReportWindow(confirm, e.interval),
		Worker: h.Worker, Highest: e.mine.HighestSlot,
	})
}

// The most that a node reads at one heartbeat, so that a thousand nodes that reconnect together do not keep ZooKeeper
// busy: mostReads times readAtOnce slots, and no more when it has read mostRunning slots of holders that run.
const (
	mostReads   = 8
	mostRunning = 2 * readAtOnce
)

// AskPeers reads the slots of the peers that this node waits for, or the next of them if there are many.
func (c *Coordinator) AskPeers(ctx context.Context) error {
	h := c.holder
	if c.AskAgainIn() == 0 {
		return nil
	}
	for reads, running := 0, 0; reads < mostReads && running < mostRunning; reads++ {
		peers := h.peerWait.Next()
		slots, err := c.Store.GetAll(ctx, slotPathsOf(peers)...)
		if err != nil {
			return err
		}
		c.meet(peers, slots)
		run, ended := h.peerWait.Note(slots, h.Incarnation, c.Elapsed.AtLeast(), c.mine.ConfirmTime())
		if running += run; ended {
			break
		}
	}
	return nil
}

// AskAgainIn returns the time until this node should send the next heartbeat because it waits for its peers, 0 if it
// does not wait. The peers may say soon that they have compared their records, and may wait for this node to say so.
func (c *Coordinator) AskAgainIn() time.Duration {
	w := &c.holder.peerWait
	if !w.begun() || w.over {
		return 0
	}
	next, left := c.Interval/3, time.Duration(w.first.Sent-c.Elapsed.AtLeast())+c.mine.ConfirmTime()
	if left > 0 {
		next = min(next, left)
	}
	return max(next, time.Millisecond)
}

// PeersSeen has what this node has found out about the other nodes.
type PeersSeen struct {
	// Live is the number of connected nodes of the cluster. 0: not known.
	Live int
	// Session is the ZooKeeper session in which the node waits for its peers: see PeerWait. AskAgainIn is the time
	// until the node must ask them again. 0: the node waits for no peer any more, so it relies on ZooKeeper's data in
	// Session.
	Session    int64
	AskAgainIn time.Duration
	// MayLeaveToOthers: a peer may take values of named sequences, as far as this node has read. Then this node may
	// leave them to that peer for a while, before it says that it is ready. It is true until the node has read all
	// slots in its session, and false if more than manyTake take values.
	MayLeaveToOthers bool
}

// peersSeen returns what this node has found out so far. Until it has asked its peers in a session, it waits in none: a
// heartbeat that is the first of its session asks them before it ends.
func (c *Coordinator) peersSeen() PeersSeen {
	seen := PeersSeen{Live: c.live.count, MayLeaveToOthers: c.holder.mayLeaveToOthers()}
	if c.holder.peerWait.asked() {
		seen.Session, seen.AskAgainIn = c.holder.peerWait.first.Session, c.AskAgainIn()
	}
	return seen
}

// manyTake is the number of nodes that take values of named sequences, beyond which the readiness of one node does not
// matter to sequences.
const manyTake = 64

// mayLeaveToOthers returns PeersSeen.MayLeaveToOthers.
func (h holderState) mayLeaveToOthers() bool {
	n := 0
	for _, takes := range h.peerWait.takes {
		if takes {
			n++
		}
	}
	return n <= manyTake && (n > 0 || !h.peerWait.read)
}
