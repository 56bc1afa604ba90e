package trace

// The stages of a process: see holderState in package coordinator.
const (
	seeking    = "seeking"
	alone      = "alone"
	confirming = "confirming"
	confirmed  = "confirmed"
	holding    = alone + " " + confirming + " " + confirmed
)

// row is the table's row for a kind of step.
type row struct {
	from, to string // the stages from which it may come; "": any. Then the process is at to; "": where it was
	rules    []rule
	changes  func(*at)
}

// rule is a rule with its number in the documents. It is judged when when holds; nil: always.
type rule struct {
	number, says string
	holds        func(*at) bool
	when         func(*at) bool
}

// table has all steps.
var table = map[string]row{
	"start":    {changes: func(x *at) { x.since, x.copied = x.Line, x.w.putBack[x.File] }},
	"put-back": {changes: (*at).wasPutBack}, // by the campaign, not by a node

	"acquired": {from: seeking + " " + confirming + " " + confirmed, to: confirming, changes: (*at).grant,
		rules: []rule{
			{"C2", "the floor is at or above the lease bound found",
				func(x *at) bool { return x.int("floor") >= x.int("found_lease") }, nil},
			{"C3", "the lease bound does not go down", leaseRises, nil},
			{"C7", "the worker is free by the node's clock and the leader's: given " +
				"up, or past the lease bound and the grace",
				free, nil},
			{"C9", "the nonce is on the disk before the write",
				func(x *at) bool { return x.node().nonces[x.word("nonce")] }, nil},
			{"C21", "no worker is taken while registration is frozen", notFrozen, nil},
		}},
	"resumed": {from: seeking + " " + alone, to: confirming, changes: (*at).grant, rules: []rule{
		{"C3", "the lease bound does not go down", leaseRises, nil},
		{"C4", "the node uses no lease bound that was not acknowledged", acknowledged, nil},
		{"C6", "the floor is at or above the reserved bound on the disk", aboveReserved, (*at).starts},
		{"C9", "the nonce is on the disk before the write",
			func(x *at) bool { return x.node().nonces[x.word("nonce")] }, nil},
		{"C15", "the record has a nonce of the node",
			func(x *at) bool { return x.node().nonces[x.word("found_nonce")] }, nil},
		{"C18", "the state directory is the node's own", ownDirectory, nil},
	}},
	"restored": {from: holding, to: confirmed, changes: (*at).grant, rules: []rule{
		{"C3", "the lease bound does not go down", leaseRises, nil},
		{"C24", "only a holder that has confirmed, and whose lease runs, puts its record back", leaseRuns, nil},
	}},
	"alone": {from: seeking, to: alone, changes: (*at).grant, rules: []rule{
		{"C4", "the node uses no lease bound that was not acknowledged", acknowledged, nil},
		{"C6", "the floor is at or above the reserved bound on the disk", aboveReserved, nil},
		{"C16", "a start without ZooKeeper needs a confirmed lease that runs", leaseRuns, nil},
		{"C18", "the state directory is the node's own", ownDirectory, nil},
	}},
	"beat": {from: confirming + " " + confirmed, changes: (*at).beat, rules: []rule{
		{"C3", "the lease bound does not go down",
			func(x *at) bool { return x.int("lease") >= max(x.int("found_lease"), x.lease) }, nil},
		{"C10", "the node waits for the confirming time", waited, func(x *at) bool { return x.is("confirms") }},
		{"C10", "only a write that confirms makes a record confirmed",
			func(x *at) bool { return x.recordConfirmed || waited(x) },
			func(x *at) bool { return x.is("confirmed") && !x.is("confirms") }},
		{"C13", "a heartbeat is a versioned write", func(x *at) bool { return x.int("version") == x.int("read")+1 },
			func(x *at) bool { return x.is("exact") }},
		{"C19", "a heartbeat writes over a record of the node only",
			func(x *at) bool { return x.node().nonces[x.word("found_nonce")] }, nil},
		{"C21", "no worker is confirmed while registration is frozen, unless its lease runs", func(x *at) bool {
			return x.lease > x.int("now") || notFrozen(x)
		}, func(x *at) bool { return x.is("confirms") }},
		{"C26", "a lease that has ended is confirmed anew",
			func(x *at) bool { return x.int("now") < x.int("found_lease") },
			func(x *at) bool { return x.is("confirmed") && !x.is("confirms") }},
	}},
	"saved": {changes: (*at).saved, rules: []rule{
		{"C5", "the reserved bound does not go down, except at a clean stop", func(x *at) bool {
			x.before = x.save
			return x.int("reserved") >= x.save.int("reserved")
		}, func(x *at) bool {
			return x.save != nil && x.save.word("worker") == x.word("worker") && !x.is("stopped")
		}},
	}},
	"invalidated": {changes: func(x *at) { x.save = nil }},
	"tenure": {from: holding, changes: (*at).begin, rules: []rule{
		{"C1", "the tenure before has ended", func(x *at) bool { return x.tenure == nil || x.tenure.end != nil },
			nil},
		{"C2", "a tenure begins at or above the floor of the grant",
			func(x *at) bool { return x.int("floor") >= x.floor }, nil},
		{"C26", "a tenure begins at or above the end of the one before on this worker", func(x *at) bool {
			x.before = x.tenure.end
			return x.int("floor") >= x.tenure.high
		}, func(x *at) bool {
			return x.tenure != nil && x.tenure.worker == x.int("worker") &&
				x.tenure.end != nil
		}},
	}},
	"bound": {from: holding, changes: (*at).bound, rules: []rule{
		{"C4", "nothing is issued beyond the lease bound that was acknowledged", func(x *at) bool {
			return x.int("limit") <= max(x.floor, x.lease)
		}, (*at).open},
		{"C5", "nothing is issued beyond the reserved bound on the disk", func(x *at) bool {
			x.before = x.save
			return x.int("limit") <= x.floor || x.save != nil && x.int("limit") <= x.save.int("reserved")
		}, (*at).open},
	}},
	"serving": {from: holding, rules: []rule{
		{"C1", "only a tenure that has not ended issues", func(x *at) bool { return x.open() }, nil},
		{"C2", "the clock has reached the floor",
			func(x *at) bool { return x.int("now") >= max(x.int("floor"), x.tenure.floor) }, (*at).open},
		{"C10", "the lease is confirmed and runs", func(x *at) bool { return x.int("now") < x.lease }, nil},
		{"C9", "the disk has that the worker is confirmed",
			func(x *at) bool { return x.save != nil && x.save.is("ever") }, nil},
	}},
	"ended": {changes: (*at).ended, rules: []rule{{"C1", "nothing is issued beyond the bounds", func(x *at) bool {
		return x.int("end") <= max(x.tenure.high, x.tenure.floor)
	}, func(x *at) bool { return x.open() }}}},
	"fenced": {from: holding, to: seeking, changes: func(x *at) { x.lease = 0 },
		rules: []rule{{"C19", "a fenced tenure has ended", func(x *at) bool { return !x.open() }, nil}}},
	"releases": {rules: []rule{
		{"C29", "the tenure has ended, at or below the lease bound that is left", func(x *at) bool {
			return x.ends[x.int("worker")] != nil && x.int("lease") >= x.ends[x.int("worker")].int("end")
		}, nil},
		{"C29", "the directory does not name the worker any more", func(x *at) bool {
			x.before = x.save
			return x.save == nil || x.save.word("worker") != x.word("worker")
		}, nil},
	}},
	"loss": {changes: (*at).freeze, rules: []rule{
		{"C20", "the incarnation has grown", func(x *at) bool { return x.int("inc") > x.int("known") }, nil},
		{"C21", "registration is frozen", func(x *at) bool { return x.int("frozen") > 0 }, nil},
		{"C21", "the freeze lasts longer than the lease of the finder",
			func(x *at) bool { return x.int("frozen") > x.lease },
			func(x *at) bool { return x.lease > x.int("now") }},
		{"C21", "the freeze lasts as long as any lease can",
			func(x *at) bool { return x.int("frozen") >= x.w.freezeEnd(x.int("now")) },
			func(x *at) bool { return x.is("must") }},
	}},
	"enters": {changes: func(x *at) { x.entered = x.Line }},
	"writes": {changes: (*at).write, rules: writeRules},
	"block": {changes: (*at).block, rules: []rule{
		{"S2", "a block comes from a write of this process", func(x *at) bool {
			x.before = x.writes[x.word("id")+x.word("nonce")]
			return x.before != nil && x.before.int("first") == x.int("first") && x.before.int("end") == x.int("end")
		}, nil},
		{"S2", "no two nodes hold one position",
			func(x *at) bool { return x.unheld(x.int("first"), x.int("end"), nil) }, nil},
		{"S13", "blocks of a later incarnation lie above all earlier ones", aboveEarlier, nil},
	}},
	// Blocks outlast a worker: a node that is fenced issues values from them, and raises their bounds.
	"journal": {changes: func(x *at) { x.node().bounds[x.word("id")] = x.Line }},
	"resumes": {from: holding, changes: (*at).resume, rules: []rule{
		{"S30", "the journal has no position that may have been issued", aboveBound, nil},
		{"S31", "the journal has only what the node held", heldBefore, nil},
	}},
	"owns": {changes: (*at).own, rules: []rule{
		{"O2", "the owner counts on nine tenths of the lease, from when it sent its write", func(x *at) bool {
			return x.int("until") <= x.int("sent")+x.int("hold_ms")*900_000
		}, nil},
		{"O5", "a renewal that comes too late begins no lease anew", func(x *at) bool {
			x.before = x.owner().line
			return x.int("now") < x.owner().until
		}, func(x *at) bool { o := x.owner(); return o != nil && o.nonce == x.word("owner") }},
		{"O4", "no two leases of a section overlap", func(x *at) bool {
			x.before = x.owner().line
			return x.boot >= x.owner().until
		}, func(x *at) bool {
			o := x.owner()
			return o != nil && o.nonce != x.word("owner") && x.boot < x.int("until")
		}},
	}},
	"disowns": {changes: func(x *at) { x.disown(x.word("owner")) }},
}
