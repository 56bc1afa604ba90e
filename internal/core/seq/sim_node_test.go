package seq

import (
	"context"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
)

// simNode is a node with a fake tenure. It stands for packages node and coordinator: it writes its slot at each
// heartbeat, and looks whether ZooKeeper has lost that or the cluster's record.
type simNode struct {
	h       *history
	id      int
	store   *memzk.Session
	is      *Rounds
	boots   int
	machine *memcluster.Machine
	elapsed *timeguard.Elapsed
	stamped timeguard.Stamped // the last acknowledged heartbeat
	disk    simDisk
	dir     *localcache.StateFile // open, if the directory is on the file system

	slot    string
	claim   simClaim
	nothing bool // the process has not written the slot yet
	// owed is the incarnation that was known when a loss of data was noticed, plus 1. 0: there is none to report.
	owed      int64
	confirmed int64 // when the node has held the worker for the confirming time, ns of AtLeast
	broken    int64 // when the node was sure for the last time that it could have missed a loss of data, ns of AtLeast
	beats     int
	cut       bool
	pauseTill int64
	lastBeat  int64
	max       map[string]int64
	nonce     int
	pace      simPace
	simPeers
	busy       bool // in a round or a heartbeat
	beating    bool
	leaves     bool     // it gives its worker up when it stops
	resumed    bool     // this process has resumed the worker
	saving     func()   // ends the write of the witness file that runs
	journaling bool     // the journal is being written
	flights    []func() // requests to pass on
	flying     bool
	apart      bool // other nodes cannot be reached
	dueAgain   bool // it must be looked at again in a second
}

// simClaim has the facts that a node knows about its slot.
type simClaim struct {
	content     string // as last acknowledged or attempted
	version     int32  // as last acknowledged
	sure        bool   // the outcome of the last write is known
	incarnation int64  // in which it was written
	cluster     int64  // the highest incarnation that the node has seen
	sent        int64  // when the last acknowledged write was sent, ms, 0: none
	heard       int64  // the incarnation in which that was written
}

// simDisk is the state directory.
type simDisk struct {
	claim   simClaim
	left    int64 // until the node has held the worker for the confirming time, ns
	boots   int
	stamped timeguard.Stamped
	whole   bool // the heartbeats had no gap for the confirming time
	witness *Witness
	// self is the identity of the node. count is the journal's count in the state file. copies are earlier journals.
	self   string
	count  uint64
	copies [][]byte
	// at is the path of the directory on the file system. "": it is in memory, as files.
	at    string
	files *memDir
}

// name is that of the node as a writer of records.
func (n *simNode) name() string { return fmt.Sprint(n.id) }

func (h *history) addNode() {
	n := &simNode{h: h, id: len(h.nodes), store: h.Mem.Session(), max: map[string]int64{}}
	n.machine = h.newMachine()
	n.slot = fmt.Sprintf("/workers/%04d", n.id)
	n.start(false)
	h.nodes = append(h.nodes, n)
}

// start makes a new process. resumes: it has the state directory, and goes on with the worker.
func (n *simNode) start(resumes bool) {
	n.store.Expire()
	n.store = n.h.Mem.Session()
	n.store.SetFault(n.fault)
	n.store.SetDone(n.done)
	n.goesOn()
	n.lastBeat, n.cut, n.owed, n.nothing, n.leaves = -1<<40, false, 0, true, false
	n.simPeers, n.pace = simPeers{}, simPace{}
	clear(n.max)
	n.h.strict["x0"].ended(n.is)
	if !resumes {
		h := n.h
		h.identities++
		n.disk = h.newDisk(fmt.Sprint(n.id, "-", h.identities))
		if len(h.nodes) > 0 && h.rng.IntN(4) == 0 { // somebody has copied a directory
			n.disk.put(h.nodes[h.rng.IntN(len(h.nodes))].disk.journal())
		}
	}
	n.resumed = resumes
	n.setBack()
	n.startClocks()
	n.claim, n.broken = n.disk.claim, n.elapsed.AtLeast()
	if n.claim.sent == 0 {
		n.claim.cluster = -1 // it has read none
		n.disk.left = int64(n.h.confirm)
	}
	n.confirmed = n.elapsed.AtLeast() + n.disk.left
	cfg := Config{
		Store: n.store, Tenure: n,
		Elapsed: n.elapsed, Boot: fmt.Sprint(n.boots), Address: n.address(), Forward: n.passTo,
		Nonce:    func() string { n.nonce++; return fmt.Sprintf("%s-%d", n.name(), n.nonce) },
		Parallel: 1, Retry: func(most time.Duration) time.Duration { return most / 2 }, Follow: n.h.heartbeat,
	}
	if n.h.tell != nil {
		n.h.tell(n, &cfg)
	}
	_, n.is = New(cfg)
	n.flights = nil
	n.is.issuer.ordered.Go = func(f func()) { n.flights = append(n.flights, f) }
	n.is.issuer.ordered.Parallel = oneByOne
	n.is.issuer.journal = n.openJournal()
	n.is.findJournal()
	n.is.saver.write = func(w Witness) error { n.disk.witness = &w; return nil }
	n.saving, n.journaling, n.dueAgain = nil, false, false
	n.is.saver.inBackground = func(f func()) {
		if n.saving = f; n.h.now%4 != 0 { // else the disk is slow
			n.endSaving()
		}
	}
	if n.disk.witness != nil {
		n.is.recallWitness(*n.disk.witness)
	}
}

// endSaving ends the write of the witness file that runs.
func (n *simNode) endSaving() {
	if f := n.saving; f != nil {
		n.saving = nil
		f()
	}
}

// startClocks makes a new process measure what passes. On the same boot of the machine it goes on from the last
// acknowledged heartbeat.
func (n *simNode) startClocks() {
	n.elapsed, n.stamped = timeguard.NewElapsed(n.machine), timeguard.Stamped{}
	if n.disk.stamped != (timeguard.Stamped{}) && n.disk.boots == n.boots {
		n.stamped = n.disk.stamped
		n.elapsed.Continue(n.stamped.Acked)
	}
}

// reboot starts the machine again: its boot clock begins anew.
func (n *simNode) reboot() {
	n.boots++
	n.h.boots(n.machine)
	n.start(true)
}

func (n *simNode) Slot(session int64) Slot {
	now := n.elapsed.Now()
	if n.nothing || now.Least < n.confirmed {
		return Slot{}
	}
	wait := max(0, n.broken+int64(n.h.confirm)-now.Least)
	if session != n.heardIn || !n.hearing.Over() {
		wait = max(wait, int64(n.h.heartbeat)/3)
	}
	if now.Most-n.stamped.Sent.Most > 2*int64(n.h.heartbeat) {
		wait = int64(n.h.confirm)
	}
	return Slot{n.slot, n.claim.version, n.claim.heard, time.Duration(wait)}
}

func (n *simNode) Cluster() (ClusterInfo, bool) {
	return ClusterInfo{
		UUID: "c", ConfirmTime: n.h.confirm, Self: n.disk.self, Resumed: n.resumed, Journal: n.disk.count,
	}, true
}

func (n *simNode) ReleasesAtStop() bool { return n.leaves }

func (n *simNode) ReportLoss(known int64, found string) {
	n.h.note("node %d in incarnation %d: %s", n.id, known, found)
	n.owed, n.lastBeat = max(n.owed, known+1), -1<<40
}

// beat is a heartbeat.
func (n *simNode) beat() {
	if n.beating || n.busy && n.delay == nil { // heartbeats go on beside a slow round
		return
	}
	was := n.busy
	n.busy, n.beating = true, true
	defer func() { n.busy, n.beating = was, false }()
	ctx := context.Background()
	n.lastBeat = n.h.now
	if n.store.Sync(ctx, "/") != nil {
		return
	}
	found, err := n.store.GetAll(ctx, record.ClusterPath, n.slot)
	if err != nil {
		return
	}
	v, err := record.ParseSnapshot([]store.Record{found[0], {}})
	if err != nil {
		n.h.violated("cluster", "%v", err)
		return
	}
	if found := n.judge(v.Incarnation(), found[1]); found != "" {
		n.ReportLoss(n.claim.cluster, found)
	}
	if n.owed > 0 {
		if raiseIncarnation(n.store, n.owed-1, len(n.h.nodes)) != nil {
			return
		}
		n.owed = 0
		if data, _, err := n.store.Get(ctx, record.ClusterPath); err != nil {
			return
		} else if v, err = record.ParseSnapshot([]store.Record{{Found: true, Data: data}, {}}); err != nil {
			return
		}
	}
	if v.Incarnation() > n.claim.cluster {
		n.claim.cluster, n.heardIn = v.Incarnation(), 0
	}
	if n.writeSlot(ctx, found[1], v.Incarnation()) {
		n.show(ctx)
		n.hear(ctx)
	}
}

// judge returns what shows that ZooKeeper has lost data, "" for nothing.
func (n *simNode) judge(incarnation int64, slot store.Record) string {
	c := n.claim
	switch {
	case incarnation < c.cluster:
		return "/cluster is missing or older"
	case c.sent == 0 || incarnation > c.incarnation: // the node puts its slot back
		return ""
	case !slot.Found, slot.Stat.Version < c.version, c.sure &&
		(string(slot.Data) != c.content || slot.Stat.Version != c.version):
		return "the slot is missing or older"
	}
	return ""
}

// writeSlot writes the slot over what was found. If that is as the node knew it, no copy of earlier data can have been
// put in place between this heartbeat and the one before without showing, as long as they are near enough. It reports
// whether the write was acknowledged.
func (n *simNode) writeSlot(ctx context.Context, found store.Record, incarnation int64) bool {
	n.beats++
	was, last, sent, session := n.claim, n.stamped, n.h.now, n.store.SessionID()
	now := timeguard.Stamped{Sent: n.elapsed.Now()}
	n.claim.content, n.claim.sure, n.claim.incarnation = n.content(incarnation), false, incarnation
	n.disk.claim, n.disk.left, n.disk.boots = n.claim, max(0, n.confirmed-now.Sent.Least), n.boots
	n.disk.count = max(n.disk.count, n.is.issuer.JournalCount())
	ctx = store.OnSession(ctx, session) // the record says what was compared in this session
	var stat store.Stat
	var err error
	if found.Found {
		stat, err = n.store.Set(ctx, n.slot, []byte(n.claim.content), found.Stat.Version)
	} else if _, err = n.store.Create(ctx, n.slot, []byte(n.claim.content), store.Persistent); err == nil {
		_, stat, err = n.store.Get(ctx, n.slot)
	}
	if err != nil {
		return false
	}
	now.Stamp, now.Acked = stat.Mtime, n.elapsed.Now()
	now = n.elapsed.Acknowledged(last, now)
	chained := found.Found && was.sent != 0 && found.Stat.Version >= was.version && last != (timeguard.Stamped{}) &&
		(was.incarnation == incarnation || !n.nothing) && now.Sent.Most-last.Sent.Most <= 2*int64(n.h.heartbeat)
	if !chained || n.nothing && !n.disk.whole { // the process before had to wait, too
		n.broken = now.Sent.Least
	} else if n.nothing {
		n.broken = now.Sent.Least - int64(n.h.confirm)
	}
	n.disk.whole = now.Sent.Least-n.broken >= int64(n.h.confirm)
	n.claim.version, n.claim.sure, n.claim.sent, n.claim.heard, n.nothing = stat.Version, true, sent, incarnation, false
	n.stamped, n.disk.stamped = now, now
	n.disk.claim = n.claim
	n.begins(coordinator.FirstBeat{
		Session: session, Zxid: stat.Mzxid, Stamp: stat.Mtime, Clock: now.Sent.Wall / 1e6, Sent: now.Sent.Least,
		Chained: now.Sent.Least-n.broken >= int64(n.h.confirm),
	})
	return true
}

func (n *simNode) round() {
	if n.busy || n == n.h.lazy && n.h.now < n.h.noticeBy-50 {
		return
	}
	n.busy, n.pace.round = true, n.is.issuer.now()
	n.endSaving()
	_ = n.is.Round(context.Background())
	n.busy = false
	n.saveJournal()
}
