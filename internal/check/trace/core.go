package trace

import (
	"fmt"
	"slices"

	"github.com/flaked/flaked/coordinator"
)

// process is the state of one process, by its trace.
type process struct {
	stage  string
	since  *Line // the step that has led to the stage
	copied *Line // an old state was put back before it started, and nothing was saved in between
	node   *node
	// floor and lease bound what the node may issue, Unix ms.
	floor, lease    int64
	recordConfirmed bool
	waitFrom        int64            // when the confirming time began, ns
	versions        map[int64]bool   // of the slot, as this process has left it
	tenure          *tenure          // the last one
	ends            map[int64]*Line  // of tenures, by worker
	save            *Line            // the record on the disk
	entered         *Line            // the incarnation that its sequences have entered
	writes          map[string]*Line // of records of sequences, by ID and nonce
}

// node is the state of a node, by the traces of all its processes.
type node struct {
	file   string
	nonces map[string]bool
	acked  map[int64]int64  // the highest confirmed lease bound that was acknowledged, by worker
	bounds map[string]*Line // of the journal, by the ID of a record
	beats  []*Line
	saves  []*Line
	// save is the record on the disk, and before what an earlier process than that one has left there.
	save, before *Line
}

// tenure is the range of timestamps from floor to high, not included, in which a process may issue for a worker.
type tenure struct {
	worker, floor, high int64
	node                *node
	line, top, end      *Line // with the floor, the highest bound and the end; nil: it has not ended
}

// at is a step that is judged. before is the step that it contradicts; nil: the one that led to the stage.
type at struct {
	w *world
	*process
	*Line
	before *Line
}

// node returns the node of the step, or of its process.
func (x *at) node() *node {
	id, ok := x.words["node"]
	if !ok {
		if x.process.node == nil {
			x.process.node = newNode(x.File)
		}
		return x.process.node
	}
	n := x.w.nodes[id]
	if n == nil {
		n = newNode(x.File)
		x.w.nodes[id] = n
	}
	return n
}

func newNode(file string) *node {
	return &node{file: file, nonces: map[string]bool{}, acked: map[int64]int64{}, bounds: map[string]*Line{}}
}

// grant begins to hold a worker.
func (x *at) grant() {
	p := x.process
	n := x.node()
	p.node, p.floor, p.lease, p.waitFrom = n, x.int("floor"), x.int("own_lease"), x.boot
	if p.save == nil {
		p.save = n.save
	}
	if x.Step == "alone" {
		return
	}
	p.versions[x.int("version")] = true
	if p.recordConfirmed = x.is("confirmed"); x.Step == "restored" {
		p.lease = x.int("lease")
		n.acked[x.int("worker")] = max(n.acked[x.int("worker")], p.lease)
	}
}

// beat takes over an acknowledged heartbeat.
func (x *at) beat() {
	p, worker := x.process, x.int("worker")
	p.floor, p.recordConfirmed = x.int("floor"), x.is("confirmed")
	p.versions[x.int("read")+1] = true
	x.node().beats = append(x.node().beats, x.Line)
	p.stage, p.since = confirming, x.Line
	if p.recordConfirmed {
		p.stage, p.lease = confirmed, x.int("lease")
		x.node().acked[worker] = max(x.node().acked[worker], p.lease)
	} else if x.int("wait_ms") > 0 {
		p.waitFrom = x.boot
	}
}

func (x *at) saved() {
	n := x.node()
	n.nonces[x.word("nonce")], n.nonces[x.word("pending")] = true, true
	delete(n.nonces, "")
	if n.save != nil && n.save.run != x.run {
		n.before = n.save
	}
	n.save, x.process.save, n.saves = x.Line, x.Line, append(n.saves, x.Line)
	if x.copied != nil {
		delete(x.w.putBack, x.File)
	}
}

func (x *at) begin() {
	t := &tenure{worker: x.int("worker"), floor: x.int("floor"), high: x.int("floor"), node: x.process.node,
		line: x.Line, top: x.Line}
	x.tenure = t
	x.w.tenures[t.worker] = append(x.w.tenures[t.worker], t)
}

func (x *at) bound() {
	if limit := x.int("limit"); x.open() && limit > x.tenure.high {
		x.tenure.high, x.tenure.top = limit, x.Line
	}
}

// ended ends the tenure: nothing is issued at or above its end.
func (x *at) ended() {
	x.ends[x.int("worker")] = x.Line
	if t := x.tenure; t != nil && t.worker == x.int("worker") {
		t.end, t.high = x.Line, min(t.high, x.int("end"))
	}
}

// freezeEnd returns the earliest end of a freeze that is long enough after a loss at now, Unix ms.
func (w *world) freezeEnd(now int64) int64 {
	return coordinator.Cluster{LeaseMs: w.cluster.Lease.Milliseconds()}.FreezeEnd(now)
}

// freeze notes a freeze of registration.
func (x *at) freeze() {
	if f := x.w.freezes[x.int("inc")]; f == nil || f.int("frozen") < x.int("frozen") {
		x.w.freezes[x.int("inc")] = x.Line
	}
}

func (x *at) starts() bool { return x.stage == seeking }

func (x *at) open() bool { return x.tenure != nil && x.tenure.end == nil }

// leaseRises reports whether the lease bound of a grant is not below the one found, nor below the node's.
func leaseRises(x *at) bool { return x.int("lease") >= max(x.int("found_lease"), x.int("own_lease")) }

// free reports whether the worker found was free.
func free(x *at) bool {
	now := min(x.int("now"), x.int("leader"))
	if x.is("found_free") {
		return x.int("found_lease") <= now+x.w.cluster.Cooldown.Milliseconds()
	}
	return x.int("found_lease")+x.w.cluster.Grace.Milliseconds() <= now
}

// notFrozen reports whether registration is not frozen by the earlier of the two clocks: neither by the record found,
// nor by what another node has written in this incarnation before.
func notFrozen(x *at) bool {
	until := x.int("frozen")
	if f := x.w.freezes[x.int("inc")]; f != nil && f.boot < x.int("sent") && f.int("frozen") > until {
		until, x.before = f.int("frozen"), f
	}
	return min(x.int("now"), x.int("leader")) >= until
}

func leaseRuns(x *at) bool { return x.is("ever") && x.int("own_lease") > x.int("now") }

func acknowledged(x *at) bool { return x.int("own_lease") <= x.node().acked[x.int("worker")] }

func ownDirectory(x *at) bool { return x.node().file == x.File }

// aboveReserved reports whether the floor is at or above what the process before has reserved. Limit 2 of safety.md is
// excepted: an old state was put back in place.
func aboveReserved(x *at) bool {
	save := x.node().save
	if save != nil && save.run == x.run {
		save = x.node().before
	}
	x.before = save
	return save == nil || save.word("worker") != x.word("worker") || x.int("floor") >= save.int("reserved") ||
		x.outdated()
}

// outdated reports whether limit 2 of safety.md covers a start from an old state: the node could not ask ZooKeeper, or
// ZooKeeper has acknowledged no heartbeat since the state was outdated. A first one may have been under way.
func (x *at) outdated() bool {
	if x.copied == nil || x.Step == "alone" {
		return x.copied != nil
	}
	next := slices.IndexFunc(x.node().saves, func(s *Line) bool {
		return s.boot > x.copied.int("copied") &&
			s.run != x.run
	})
	since := 0
	for _, b := range x.node().beats {
		if next >= 0 && b.int("sent") > x.node().saves[next].boot {
			since++
		}
	}
	return since < 2
}

// waited reports whether the confirming time has passed before the write was sent.
func waited(x *at) bool { return x.int("sent")-x.waitFrom >= int64(x.w.cluster.Confirm) }

// disjoint judges the ranges of all tenures of each worker: the promise itself. Limit 2 of safety.md is excepted.
func (w *world) disjoint() {
	for _, all := range w.tenures {
		for k, b := range all {
			for _, a := range all[:k] {
				w.Rules["C2"]++
				if max(a.floor, b.floor) < min(a.high, b.high) && !w.forgotten(a, b) {
					w.found("C2", fmt.Sprintf("the ranges of worker %d overlap: from %d below %d, and from %d below %d",
						a.worker,
						a.floor, a.high, b.floor, b.high), a.top, b.line)
				}
			}
		}
	}
}

// forgotten reports whether b's node does not know the highest bound of a, because an old state of that node was put
// back that had been copied before. Several processes may have started in that state, b's not as the first.
func (w *world) forgotten(a, b *tenure) bool {
	return a.node == b.node && slices.ContainsFunc(w.putBacks, func(l *Line) bool {
		return l.File == b.line.File && l.int("copied") <= a.top.boot && a.top.boot < l.boot && l.boot < b.line.boot
	})
}

// wasPutBack notes that an old state was put back, which was copied at the time "copied", ns.
func (x *at) wasPutBack() {
	if x.int("copied") > 0 {
		x.w.putBack[x.File], x.w.putBacks = x.Line, append(x.w.putBacks, x.Line)
	}
}
