package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// lossModel drives nodes while ZooKeeper loses data. Clocks differ by at most 4 s, nodes send
// their heartbeats in time, and each loss has a holder that can notice it. Without such a holder
// the promise does not hold (Limits in docs/safety.md).
type lossModel struct {
	*model
	copies   []*zkstore.MemSnapshot
	witness  *member // must report before anything else happens to it
	clusters int
}

func (d *lossModel) holder() *member {
	for _, i := range d.rng.Perm(len(d.nodes)) {
		m := d.nodes[i]
		if m.up && !d.busy[m] && m.claim.Confirmed && m.confirmed && m.clock() < m.claim.LeaseUntil-10_000 && m.sess.SessionID() != 0 {
			return m
		}
	}
	return nil
}

// alone runs a step of a node, unless the node is in the middle of another step.
func (d *lossModel) alone(m *member, step func()) {
	if d.busy[m] {
		return
	}
	d.busy[m] = true
	d.depth++
	defer func() { d.busy[m] = false; d.depth-- }()
	step()
}

// round gives each node a turn, in random order, with random events in between.
func (d *lossModel) round() {
	if d.rng.IntN(6) == 0 {
		d.copies = append(d.copies, d.mem.Snapshot())
	}
	if d.rng.IntN(25) == 0 {
		d.lose()
	}
	if d.hands != nil && d.rng.IntN(10) == 0 {
		d.hands()
	}
	for _, i := range d.rng.Perm(len(d.nodes)) {
		if m := pick(d.rng, d.nodes...); d.rng.IntN(8) == 0 {
			d.alone(m, func() { d.event(m) })
		}
		d.alone(d.nodes[i], func() { d.turn(d.nodes[i]) })
		for _, m := range d.nodes {
			m.extend()
			m.issue()
		}
		d.pass(time.Duration(d.rng.Int64N(int64(DefaultHeartbeat) / int64(len(d.nodes)))))
	}
	d.apart()
}

func (d *lossModel) turn(m *member) {
	switch {
	case m.up:
		_, err := m.beat()
		if m == d.witness && err == nil {
			d.witness = nil
		}
	case d.rng.IntN(3) == 0:
		if m.start() != nil && d.rng.IntN(8) == 0 {
			m.disk = &disk{cl: d.cl} // a fresh state directory
			m.crash()
		}
	}
}

// before runs before every call of m to ZooKeeper, and returns the fault of the call. Other
// nodes may act first, or ZooKeeper may lose data.
func (d *lossModel) before(m *member) zkstore.Fault {
	for d.depth < 3 && d.rng.Float64() < d.races {
		switch m := pick(d.rng, d.nodes...); d.rng.IntN(5) {
		case 0:
			d.lose()
		case 1:
			d.alone(m, func() { d.event(m) })
		default:
			d.alone(m, func() { d.turn(m) })
		}
	}
	if m != d.witness && d.rng.Float64() < d.faults {
		return pick(d.rng, zkstore.FailBefore, zkstore.FailAfter)
	}
	return zkstore.NoFault
}

// event makes a random event happen to a node, but not to the witness.
func (d *lossModel) event(m *member) {
	if m == d.witness {
		return
	}
	m.wait = pick(d.rng, d.leases...)
	switch n := d.rng.IntN(10); {
	case !m.up && n < 2:
		m.disk = &disk{cl: d.cl}
		m.crash()
	case n < 2:
		m.sess.Expire()
	case n < 4:
		m.sess.Heal()
	case n < 5:
		m.sess.Partition()
	case n < 6:
		m.sess.Lag()
	case !m.up:
	case n < 7:
		m.crash()
	case n < 8:
		_ = m.halt()
	case n < 9:
		_ = m.leave()
	default:
		d.rotate(m)
	}
}

// lose makes ZooKeeper lose data in a random way, if there is a holder that can notice it. That
// holder becomes the witness. While there is a witness, lose does nothing.
func (d *lossModel) lose() {
	if d.witness != nil {
		return
	}
	if d.witness = d.holder(); d.witness == nil {
		return
	}
	remove := func(path string) {
		_ = d.admin.Delete(d.Context(), path, zkstore.AnyVersion)
	}
	epoch := func() {
		if e := d.mem.Zxid() >> 32; e > 0 {
			d.mem.SetEpoch(uint32(e) + 1)
		}
	}
	kind := d.rng.IntN(7)
	d.note("ZooKeeper", "loss %d", kind)
	switch kind {
	case 0:
		d.mem.Wipe()
		epoch()
	case 1, 2, 3:
		if len(d.copies) == 0 {
			return
		}
		d.mem.Restore(pick(d.rng, d.copies...))
		epoch()
		d.mem.ExpireOrphans()
	case 4:
		remove(slotPath(d.rng.IntN(d.cl.Slots)))
	case 5:
		remove(clusterPath)
	case 6:
		remove(clusterPath)
		for w := range d.cl.Slots {
			remove(slotPath(w))
		}
		if d.rng.IntN(2) == 0 {
			remove(workersPath)
		}
	}
	// An operator may create another cluster, in the belief that it helps.
	if d.rng.IntN(3) == 0 {
		d.clusters++
		cl := d.cl
		cl.UUID = fmt.Sprintf("cluster-x%d", d.clusters)
		_, _ = CreateCluster(d.Context(), d.admin, cl)
	}
	d.forget()
}

// apart checks that the times in which two holdings of a slot issued IDs do not overlap.
func (d *lossModel) apart() {
	type span struct {
		*issuing
		cluster string
	}
	var all []span
	for _, m := range d.nodes {
		for _, t := range m.past {
			if t.first > 0 {
				all = append(all, span{t, m.disk.cl.UUID})
			}
		}
	}
	for i, a := range all {
		for _, b := range all[:i] {
			if a.worker == b.worker && max(a.first, b.first) <= min(a.issued, b.issued) {
				d.Errorf("worker %d: %s issued from %d to %d and %s from %d to %d", a.worker, a.who, a.first, a.issued, b.who, b.first, b.issued)
			}
		}
	}
}

// TestModelLoss plays random histories in which ZooKeeper loses data, and a holder can reach
// it.
func TestModelLoss(t *testing.T) {
	modelLoss(t, 2000, func(*lossModel) {})
}

// TestModelLossByHand plays the same histories with operators who take slots away and do not
// know of the loss.
func TestModelLossByHand(t *testing.T) {
	taken := 0
	modelLoss(t, 500, func(d *lossModel) {
		d.hands = func() {
			hand := Operator{Store: d.admin, Now: func() int64 { return d.now }, By: "model"}
			h, err := hand.Examine(d.Context(), d.rng.IntN(d.cl.Slots))
			if err == nil && !h.Slot.Released {
				e, err := hand.ForceRelease(d.Context(), h)
				d.note("by hand", "takes away %d, %v: %+v, %v", h.Worker, h.Availability, e, err)
				if err == nil {
					taken++
				}
			}
		}
	})
	t.Logf("%d taken away", taken)
	if taken < 20 {
		t.Error("too little happens in these histories")
	}
}

func modelLoss(t *testing.T, runs int, with func(*lossModel)) {
	issued := 0
	runModel(t, runs, func(t testing.TB, seed uint64) {
		d := &lossModel{model: newModel(t, seed)}
		with(d)
		d.races, d.faults = 0.02, 0.01
		d.leases = []time.Duration{20 * time.Second, 40 * time.Second}
		d.cl.LeaseMs = millis(40 * time.Second)
		d.remove(clusterPath)
		d.init(d.cl)
		for _, m := range d.nodes {
			m.disk.cl, m.wait = d.cl, d.leases[0]
			m.hook = func(zkstore.Call) zkstore.Fault { return d.before(m) }
		}
		for _, m := range d.nodes {
			m.skew = d.rng.Int64N(4000) - 2000
		}
		for range 60 {
			d.round()
			if t.Failed() {
				return
			}
		}
		for _, m := range d.nodes {
			for _, at := range m.past {
				if at.first > 0 {
					issued++
				}
			}
		}
	})
	t.Logf("%d tenures issued", issued)
}
