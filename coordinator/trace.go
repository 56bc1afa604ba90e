package coordinator

import "github.com/flaked/flaked/internal/core/store"

// Trace gets the steps of the protocol, each before it takes effect for clients: see docs/spec/README.md. about has
// names and values in turn. nil: nobody wants them. A Trace must return soon.
type Trace func(step string, about ...any)

// Step passes a step on.
func (t Trace) Step(step string, about ...any) {
	if t != nil {
		t(step, about...)
	}
}

// leader returns the leader's time when our clock reads now, Unix ms, as far as this node knows.
func (e evidence) leader() int64 {
	if e.reading == (Reading{}) {
		return e.now
	}
	return e.reading.leaderNow(e.now)
}

// traceGrant traces that the process begins to hold the slot: how is acquired, resumed or restored. e is as of the
// decision, and slot the record that was written over old.
func (h *Hold) traceGrant(how string, cl Cluster, e evidence, old, slot Slot, version int32) {
	h.co.Trace.Step(how, "node", h.Node, "worker", h.Worker, "term", h.Term, "nonce", h.Nonce, "inc", cl.Incarnation,
		"floor", h.Floor, "reserved", h.ReservedUntil, "own_lease", h.LeaseUntil, "ever", h.EverConfirmed,
		"lease", slot.LeaseUntil, "confirmed", slot.Confirmed, "version", version,
		"found_term", old.Term, "found_nonce", old.Nonce, "found_lease", old.LeaseUntil, "found_free", old.givenUp(),
		"frozen", cl.FrozenUntil, "now", e.now, "leader", e.leader(), "sent", e.at.Boot)
}

// traceBeat traces an acknowledged heartbeat: d was written over v.
func (h *Hold) traceBeat(d decision, v view, after store.Stat, e evidence, b Beat) {
	exact := d.cluster == *v.cl && !d.confirms // else the version was read after the write
	h.co.Trace.Step("beat", "node", h.Node, "worker", h.Worker, "term", h.Term, "nonce", h.Nonce,
		"inc", v.cl.Incarnation, "floor", b.Floor, "lease", d.slot.LeaseUntil, "confirmed", b.Confirmed,
		"confirms", d.confirms, "wait_ms", b.Wait.Milliseconds(),
		"found_nonce", v.slot.Nonce, "found_lease", v.slot.LeaseUntil,
		"read", v.stat.Version, "version", after.Version, "exact", exact, "frozen", v.cl.FrozenUntil,
		"now", e.now, "leader", e.leader(), "stamp", after.Mtime, "sent", e.at.Boot)
}
