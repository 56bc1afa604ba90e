package record

// Finding says what a record that was read shows, compared with the one that the node knows.
type Finding int

const (
	// Absent: ZooKeeper has no record and has lost none: the node has seen none, or the one that it knows was purged.
	Absent Finding = iota
	// Good: the record is the known one or a later one.
	Good
	// Lost: ZooKeeper has lost the known record, or a later one.
	Lost
	// Later: the cluster has a later incarnation, so a node has noticed that ZooKeeper has lost data. Compare does not
	// return it.
	Later
)

// Compare compares a record that was read after a sync with the one that the node knows. purged is State.Purged,
// as it was read together with the record. In a later incarnation than that of known, a node may have written Purged
// from memory. Then the caller must have put back a record that is missing: see series.putBack.
func Compare(found, known *Record, purged int64) Finding {
	switch {
	case found == nil && known == nil:
		return Absent
	case known == nil:
		return Good
	case found == nil && known.WriteCount <= purged: // every record that was made after a purge has a higher count
		return Absent
	case found == nil, known.Newer(*found):
		return Lost
	//mutant:s12-equal-count-is-good by TestCompare -> case false:
	case known.Rivals(*found):
		return Lost
	}
	return Good
}

// Newer reports whether r was written after other, as far as their incarnations and write counts show.
func (r Record) Newer(other Record) bool {
	return r.Incarnation > other.Incarnation || r.Incarnation == other.Incarnation && r.WriteCount > other.WriteCount
}

// Rivals reports whether r and other are two writes with one write count. Each write checks the version of the one
// before, so ZooKeeper has lost one of the two, and the other followed the record before that.
func (r Record) Rivals(other Record) bool {
	return r.Incarnation == other.Incarnation && r.WriteCount == other.WriteCount && r.Nonce != other.Nonce
}

// IsPurged reports whether a node assumes that r, which ZooKeeper does not have, was purged. It does so for a tombstone
// that is not above purged, which is State.Purged, although a purge of another name may have raised that. Nothing is
// lost if the tombstone was not purged. A tombstone with a wait is put back in any case, because nodes that are cut off
// may issue its values. If it was purged, an operator can purge it again.
func (r Record) IsPurged(purged int64) bool {
	//mutant:s18-wait-is-purged by internal/core/seq:TestTombstoneThatWaitsComesBack -> return r.Kind() == Tombstone && r.WriteCount <= purged
	return r.Kind() == Tombstone && r.WriteCount <= purged && r.WaitMs == 0
}
