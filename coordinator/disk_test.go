package coordinator

// disk is a node's state directory.
type disk struct {
	cl         Cluster
	claim      Claim
	generation uint64
	usable     bool // there is a record, not invalidated
	saves      int
	// If err is not nil, every Save returns it.
	err error
	// saving is called at the start of every Save.
	saving func(Claim)
}

// Save is part of Ledger. If the disk has a usable claim of the same node on the same slot, its reserved bound stays.
// Otherwise the new claim brings its own.
func (d *disk) Save(c Claim) (uint64, error) {
	if d.saving != nil {
		d.saving(c)
	}
	if d.err != nil {
		return 0, d.err
	}
	if d.usable && c.Node == d.claim.Node && c.Worker == d.claim.Worker {
		c.ReservedUntil = d.claim.ReservedUntil
	}
	d.generation++
	d.saves++
	d.claim, d.usable = c, true
	d.claim.Generation = d.generation
	return d.generation, nil
}

// reserve saves a claim with the reserved bound m, Unix ms.
func (d *disk) reserve(c Claim, m int64) {
	d.generation++
	d.claim = c
	d.claim.ReservedUntil, d.claim.Generation = m, d.generation
}

// issuing has the range of timestamps in which a tenure of a slot may issue IDs, and the lowest and the highest
// timestamp that it has issued. Unix milliseconds.
type issuing struct {
	who    string
	worker int
	lo, hi int64 // lo <= ts < hi
	first  int64 // lowest issued, 0 for none
	issued int64 // highest issued, 0 for none
}

// extend raises the reserved bound on the disk, and then the range of the tenure.
func (m *member) extend() {
	c := &m.claim
	if m.up && c.EverConfirmed {
		m.disk.reserve(*c, max(m.disk.claim.ReservedUntil, min(m.clock()+millis(labReserve), c.LeaseUntil)))
		m.t.hi = max(m.t.hi, min(m.disk.claim.ReservedUntil, c.LeaseUntil))
	}
}

// issue issues an ID at the node's present time if the range of its tenure allows that, and reports whether it did.
func (m *member) issue() bool {
	ts := m.clock()
	if !m.up || !m.claim.EverConfirmed || ts < m.t.lo || ts >= m.t.hi || ts <= m.t.issued {
		return false
	}
	if m.t.first == 0 {
		m.t.first = ts
	}
	m.t.issued = ts
	return true
}
