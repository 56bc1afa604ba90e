package coordinator

import (
	"context"
	"math"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// word records whether all live peers have written their slots after this node's first heartbeat: the first that was
// acknowledged in the present ZooKeeper session and the present incarnation.
//
// A chain shows that ZooKeeper has lost nothing of what this node wrote. It does not show whether ZooKeeper has lost
// what others wrote since this node's last heartbeat: values that they took, or workers. They notice that themselves,
// at the latest when they write their slots. So before a node relies on ZooKeeper in a new session (C14), it waits
// until each live peer has written, or for the confirming time.
type word struct {
	session int64 // of our first write; 0: none
	began   int64 // when that was sent, ns of AtLeast
	zxid    int64 // its transaction
	// all: each live peer has written since, and has compared its named sequences. Then none has lost anything.
	all bool
	// many: there are more than mostAsked, so nobody asks them.
	many bool
	// othersTake: one of them may take values of named sequences. read: all of this has been read.
	othersTake, read bool
}

// mostAsked is the most live peers whose word a node waits for. In larger clusters it waits for the confirming time: a
// thousand nodes that read a thousand records each would keep ZooKeeper busy.
const mostAsked = 64

// of returns the word after a write of our slot was acknowledged. It begins anew with a new session.
func (w word) of(session, sent, zxid int64) word {
	//mutant:c14-word-of-the-last-session by TestWord -> if w.session != 0 {
	if w.session == session {
		return w
	}
	return word{session: session, began: sent, zxid: zxid}
}

// given reports whether a peer's record shows that the peer has written since we did, and has lost nothing (C14).
func (w word) given(peer Slot, stat store.Stat, incarnation int64) bool {
	compared := peer.Compared == 0 || peer.Compared == incarnation+1
	return stat.Mzxid > w.zxid && peer.Incarnation == incarnation && (compared || peer.Stopped || peer.Released)
}

// relyAt returns when a node need not wait for its peers' word any more, ns of AtLeast.
func (w word) relyAt(confirm time.Duration) int64 {
	switch {
	case w.all:
		return 0
	case w.session == 0:
		return math.MaxInt64
	}
	return w.began + int64(confirm)
}

// Waits reports whether this node waits for its peers' word.
func (h *Hold) Waits() bool {
	w := h.word
	return w.session != 0 && !w.many && !w.all && h.co.Elapsed.AtLeast() < w.began+int64(h.co.mine.ConfirmTime())
}

// hearPeers reads the records of all live peers, and notes their word.
func (h *Hold) hearPeers(ctx context.Context) error {
	c := h.co
	if err := c.list(ctx, c.roster.present); err != nil {
		return err
	}
	peers := c.known(h.Worker)
	if len(peers) > mostAsked {
		h.word.many, h.word.read = true, true // for OthersTake: nobody waits for one node among so many
		return nil
	}
	paths := make([]string, len(peers))
	for i, worker := range peers {
		paths[i] = SlotPath(worker)
	}
	all, takes, w := true, false, h.word
	err := eachRecord(ctx, c.Store, paths, func(_ int, r store.Record) bool {
		s := parseSlot(r.Data)
		all = all && r.Found && w.given(s, r.Stat, h.Incarnation)
		takes = takes || r.Found && s.Takes && !s.Stopped && !s.Released
		return true
	})
	if err == nil {
		h.word.all, h.word.othersTake, h.word.read = all, takes, true
	}
	return err
}

// RelyOn returns the session in which this node may rely on ZooKeeper, and from when on, ns of AtLeast: it has
// its peers' word then, or has waited for the confirming time.
func (h *Hold) RelyOn() (session, from int64) {
	return h.word.session, h.word.relyAt(h.co.mine.ConfirmTime())
}

// OthersTake reports whether a live peer may take values of named sequences, as far as this node has read: then this
// node may leave them to that peer for a while, before it says that it is ready. It is true until the node has read the
// peers' records in its session. It is false if there are more than mostAsked, because the readiness of one node among
// so many does not matter to sequences.
func (h *Hold) OthersTake() bool { return !h.word.read || h.word.othersTake }
