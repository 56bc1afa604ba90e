package seqstore

import (
	"context"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
)

// simNode is a node with a fake tenure: a slot that it writes at each heartbeat.
type simNode struct {
	h      *history
	id     int
	store  *zkstore.MemSession
	is     *Issuer
	offset int64 // of the clock, ms

	slot      string
	content   string // of the slot as last acknowledged or attempted
	version   int32
	sure      bool // the outcome of the last slot write is known
	confirmed int64
	beats     int
	cut       bool
	pauseTill int64
	lastBeat  int64
	lastAcked int64 // time of the last acknowledged slot write
	ackedIn   int64 // its session
	max       map[string]int64
	nonce     int
	busy      bool // in a round or a heartbeat
	beating   bool
}

func (h *history) addNode() {
	n := &simNode{h: h, id: len(h.nodes), store: h.mem.Session(), offset: h.offset(), max: map[string]int64{}}
	n.slot = fmt.Sprintf("/workers/%04d", n.id)
	n.start()
	h.nodes = append(h.nodes, n)
}

// start makes a new process on the node's slot.
func (n *simNode) start() {
	n.store = n.h.mem.Session()
	n.store.SetFault(n.fault)
	n.store.SetDone(n.done)
	n.sure, n.content, n.lastBeat, n.cut, n.pauseTill = false, "", -1<<40, false, 0
	n.confirmed = n.h.now + n.h.confirm.Milliseconds()
	clear(n.max)
	n.h.strict["x0"].ended(n.is)
	var w Witness
	remembers := false
	if n.is != nil && n.h.rng.IntN(2) == 0 {
		w, remembers = n.is.witness()
	}
	n.is = New(Config{
		Store: n.store, Tenure: n,
		Now:      func() int64 { return simEpoch + n.h.now + n.offset },
		Mono:     func() int64 { return (n.h.now + 1) * 1e6 },
		Nonce:    func() string { n.nonce++; return fmt.Sprintf("%d-%d", n.id, n.nonce) },
		Parallel: 1, Retry: func(most time.Duration, _ func()) time.Duration { return most / 2 }, Follow: n.h.heartbeat,
	})
	if remembers {
		n.is.remember(w)
	}
}

func (n *simNode) Confirmed(session int64) bool {
	return n.sure && n.h.now >= n.confirmed && n.ackedIn == session
}

func (n *simNode) Cluster() (ClusterInfo, bool) {
	return ClusterInfo{UUID: "c", ConfirmTime: n.h.confirm, MaxLease: 10 * time.Minute}, true
}

// beat writes the slot. If ZooKeeper has lost it, beat notes that and puts it back.
func (n *simNode) beat() {
	if n.busy {
		return
	}
	n.busy, n.beating = true, true
	defer func() { n.busy, n.beating = false, false }()
	ctx := context.Background()
	n.lastBeat = n.h.now
	if n.store.Sync(ctx, "/") != nil {
		return
	}
	found, err := n.store.GetAll(ctx, n.slot)
	if err != nil {
		return
	}
	n.beats++
	content := fmt.Sprintf("%d/%d", n.id, n.beats)
	switch r := found[0]; {
	case !r.Found:
		if n.content != "" {
			n.h.note("node %d finds its slot missing", n.id)
			n.is.NoteLoss("the slot is missing")
		}
		n.sure = false
		if _, err := n.store.Create(ctx, n.slot, []byte(content), zkstore.Persistent); err == nil {
			n.sure, n.version, n.content, n.lastAcked, n.ackedIn = true, 0, content, n.h.now, n.store.SessionID()
		}
		return
	case n.content != "" && (n.sure && (string(r.Data) != n.content || r.Stat.Version != n.version) || !n.sure && r.Stat.Version < n.version):
		n.h.note("node %d finds its slot %s at %d, not %s at %d", n.id, r.Data, r.Stat.Version, n.content, n.version)
		n.is.NoteLoss("the slot is older")
		fallthrough
	default:
		n.sure = false
		stat, err := n.store.Set(ctx, n.slot, []byte(content), r.Stat.Version)
		if n.content = content; err == nil {
			n.sure, n.version, n.lastAcked, n.ackedIn = true, stat.Version, n.h.now, n.store.SessionID()
		}
	}
}

func (n *simNode) round() {
	if n.busy {
		return
	}
	n.busy = true
	defer func() { n.busy = false }()
	_ = n.is.Round(context.Background())
}
