package seq

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
)

// simPeers has the facts that a node knows about its peers. The decision whose word it needs is the product's.
type simPeers struct {
	hearing coordinator.PeerWait
	heardIn int64 // the session of hearing, 0: there is none
	shownIn int64 // the session of the live lock that the node has seen last
	// delay, if not nil, returns how long a call takes, ms. Other nodes go on meanwhile.
	delay func(memzk.Call) int64
	// mustNotice is Followed.Compared as the node must not report it, because it knows a record that was lost. nil: it
	// may report all.
	mustNotice *int64
}

// content returns the record of the slot, as the next heartbeat writes it.
func (n *simNode) content(incarnation int64) string {
	s := coordinator.Slot{
		Node: n.disk.self, Term: 1, Nonce: fmt.Sprintf("%d/%d/%d", n.id, n.boots, n.beats), LeaseUntil: 1 << 50,
		Confirmed: true, Incarnation: incarnation, ReportedClock: n.machine.Wall() / 1e6, Followed: n.is.issuer.Followed(),
		HeartbeatMs: n.h.heartbeat.Milliseconds(),
	}
	data, err := json.Marshal(s)
	if err != nil {
		n.h.violated("slot", "%v", err)
	}
	if n.mustNotice != nil && s.Compared != nil && *s.Compared == *n.mustNotice {
		n.h.violated("unnoticed", "node %d has compared its records, and has found nothing", n.id)
	}
	return string(data)
}

// begins begins a hearing with the first heartbeat in a session and an incarnation.
func (n *simNode) begins(first coordinator.FirstBeat) {
	if n.heardIn == first.Session {
		return
	}
	first.Worker, first.Highest = n.id, len(n.h.nodes)-1
	first.Window = coordinator.ReportWindow(n.h.confirm, n.h.heartbeat)
	n.hearing, n.heardIn = coordinator.NewPeerWait(first), first.Session
}

// show creates the live lock, as a heartbeat does that has not seen it in this session.
func (n *simNode) show(ctx context.Context) {
	session := n.store.SessionID()
	if n.shownIn == session {
		return
	}
	owner := coordinator.Owner{Node: n.disk.self, Worker: n.id}
	co := coordinator.New(coordinator.Config{Store: n.store})
	co.Recall(coordinator.Claim{Owner: owner})
	if co.EnsureLiveLock(ctx) == nil {
		n.shownIn = session
		n.h.note("node %d shows that it is live", n.id)
	}
}

// hear reads what the peers say, as a heartbeat does.
func (n *simNode) hear(ctx context.Context) {
	if n.hearing.Over() {
		return
	}
	for ended := false; !ended; {
		var paths []string
		for _, worker := range n.hearing.Next() {
			paths = append(paths, coordinator.SlotPath(worker))
		}
		slots, err := n.store.GetAll(ctx, paths...)
		if err != nil {
			return
		}
		_, ended = n.hearing.Note(slots, n.claim.incarnation, n.elapsed.AtLeast(), n.h.confirm)
	}
	if n.hearing.Over() {
		n.h.note("node %d waits for nobody any more", n.id)
	}
}

// untilBeat returns the time from one heartbeat to the next, ms: it is short while the node waits for its peers.
func (n *simNode) untilBeat() int64 {
	if n.heardIn != 0 && !n.hearing.Over() {
		return n.h.heartbeat.Milliseconds() / 3
	}
	return n.h.heartbeat.Milliseconds()
}

// takeLong lets time pass before a call of a node whose calls take long. All others go on meanwhile.
func (n *simNode) takeLong(c memzk.Call) {
	if n.delay == nil || c.More {
		return
	}
	was := n.h.inside
	n.h.inside = true
	n.h.run(n.delay(c))
	n.h.inside = was
}

// expireOrphans ends the sessions of before the last loss of data, when their time is over. Until then the live locks
// of nodes that have yet to reconnect stay.
func (h *history) expireOrphans() {
	if h.orphansUntil != 0 && h.now >= h.orphansUntil {
		h.orphansUntil = 0
		h.Mem.ExpireOrphans()
		h.note("the sessions of before have ended")
	}
}

// simReturn is the way in which the only node that knows of a loss comes back.
type simReturn int

const (
	comesLate  simReturn = iota // when its session from before has expired
	isSlow                      // its calls take long
	comparesOn                  // it needs longer than the confirming time to compare its records
)

// loseSecond: ZooKeeper loses its last second, in which a node has taken positions. No heartbeat is lost, so that only
// this node can notice that. All others ask for values meanwhile.
func (h *history) loseSecond() {
	h.inside = true // no heartbeat of another node shows the loss
	defer func() { h.inside = false }()
	h.calm()
	name, x, how := h.names[h.rng.IntN(len(h.names))], h.nodes[h.rng.IntN(2)], simReturn(h.rng.IntN(3))
	defer func() { x.delay, x.mustNotice = nil, nil }()
	if how == comparesOn {
		name = h.meet(x, 30)
	}
	h.ask(x, name, 10, false)
	for _, n := range h.nodes {
		n.beat()
		n.round()
	}
	s := x.is.issuer.series.byName[name]
	data, _, _ := h.Mem.Peek(record.Path(name))
	r, err := record.Parse(data)
	if s == nil || err != nil || r.DeletedAt != 0 {
		return
	}
	c, incarnation := simCopy{h.now, h.Mem.Snapshot()}, x.claim.incarnation
	h.now += h.rng.Int64N(500)
	for range 1 + h.rng.IntN(10) {
		h.ask(x, name, 1+h.rng.IntN(300), false)
	}
	h.now += h.rng.Int64N(500)
	if s.Known == nil || s.Known.WriteCount <= r.WriteCount || !slices.Contains(h.able(c.at-2*h.heartbeat.Milliseconds()-1), x) {
		return
	}
	confirm := h.confirm.Milliseconds()
	away := confirm / 16
	if h.rng.IntN(3) == 0 {
		away = 3 * confirm
	}
	h.now += h.rng.Int64N(away) // without ZooKeeper
	h.putBack(c, x)
	h.note("node %d knows that, and comes back in way %d", x.id, how)
	x.mustNotice = &incarnation
	h.orphansUntil = h.now + confirm/2
	if how == comesLate {
		h.orphansUntil = h.now + h.rng.Int64N(confirm/2)
		x.pauseTill = h.now + h.rng.Int64N(3*confirm/4)
	}
	x.delay = h.delays(how)
	for end := h.noticeBy + confirm; h.now < end; {
		if n := h.nodes[h.rng.IntN(len(h.nodes))]; n != x {
			h.ask(n, name, 1+h.rng.IntN(300), false)
		}
		h.run(h.rng.Int64N(confirm / 10))
	}
}

// delays returns how long the calls of a node take that comes back.
func (h *history) delays(how simReturn) func(memzk.Call) int64 {
	heartbeat := h.heartbeat.Milliseconds()
	return func(c memzk.Call) int64 {
		switch {
		case how == comparesOn && strings.HasPrefix(c.Path, record.RecordsDir):
			return heartbeat / 5
		case how == isSlow && h.rng.IntN(3) == 0:
			return h.rng.Int64N(2 * heartbeat / 3)
		}
		return 0
	}
}

// meet lets a node know more names, and returns another one, which the node compares after them.
func (h *history) meet(n *simNode, names int) string {
	st := h.Mem.Session()
	for k := range names {
		name := fmt.Sprint("many", k)
		_, err := h.operator(st).Create(context.Background(), operator.Definition{Name: name, StartGiven: true,
			Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}, Settings: settings(50)})
		if err == nil {
			n.is.issuer.series.findOrAdd(name).markStale(true)
		}
	}
	n.round()
	last := fmt.Sprint("z", len(h.names))
	h.names = append(h.names, last)
	h.create(st, last)
	return last
}
