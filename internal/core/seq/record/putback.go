package record

// Finding says what a record that was read shows, compared with the one that the node knows.
type Finding int

const (
	// Absent: ZooKeeper has no record, and the node has seen none.
	Absent Finding = iota
	// Good: the record is the known one or a later one.
	Good
	// Lost: ZooKeeper has lost the known record, or a later one.
	Lost
	// Later: the cluster has a later incarnation, so a node has noticed that ZooKeeper has lost data. Compare does not
	// return it.
	Later
)

// Compare compares a record that was read after a sync with the one that the node knows. purged is
// State.Purged, as it was read together with the record. In a later incarnation than that of known, a node may have
// written Purged from memory. Then the caller must have put back a record that is missing: see series.putBack.
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

// IsPurged reports whether a node assumes that r, which ZooKeeper does not have, was purged. It does so for a tombstone
// that is not above purged, which is State.Purged, although a purge of another name may have raised that. Nothing is
// lost if the tombstone was not purged. A tombstone with a wait is put back in any case, because nodes that are cut off
// may issue its values. If it was purged, an operator can purge it again.
func (r Record) IsPurged(purged int64) bool {
	//mutant:s18-wait-is-purged by internal/core/seq:TestTombstoneThatWaitsComesBack -> return r.Kind() == Tombstone && r.WriteCount <= purged
	return r.Kind() == Tombstone && r.WriteCount <= purged && r.WaitMs == 0
}

// PutBack returns the record that a node writes after a loss of data (S8): the newer one of found and known. Its next
// position is the highest that the node has seen of this sequence. due is false if found needs no change. found is nil
// if there is no record.
//
// Of two writes with one write count, either one will do if it has the higher next position. If they are of two lives
// of the name, the one whose values go further comes back. The write count then grows above both.
func PutBack(found *Record, known Record, highest int64) (next Record, due bool) {
	//mutant:s8-lower-put-back by TestPutBack -> known = known.Raised(known.Next)
	known = known.Raised(max(known.Next, highest))
	if found == nil {
		return known, true
	}
	next, older, rivals := *found, known.Newer(*found), known.Rivals(*found)
	if older || rivals && found.ID != known.ID && known.HighestIssued() > found.HighestIssued() {
		next = known
	}
	if found.ID == known.ID { // else it is another life of the name, with positions of its own
		next = next.Raised(max(found.Next, known.Next)).withHoldsOf(known).withHoldsOf(*found)
	}
	next.WriteCount = max(found.WriteCount, known.WriteCount)
	return next, older || rivals || next.Next > found.Next || next.EarlierHoldMs > found.EarlierHoldMs ||
		next.WaitMs > found.WaitMs
}

// withHoldsOf returns r with the longest hold that r or known has had, so that a purge waits for that hold. known is
// another copy of the record, of the same life. r may be an old copy from before the hold was longer, which an operator
// has changed since.
func (r Record) withHoldsOf(known Record) Record {
	//mutant:s18-shorter-hold-put-back by TestPutBackKeepsTheLongestHold -> return r
	r.EarlierHoldMs = max(r.EarlierHoldMs, known.EarlierHoldMs)
	if known.HoldMs > r.LongestHoldMs() {
		r.EarlierHoldMs = known.HoldMs
	}
	if r.Kind() == Tombstone && r.Next > 0 {
		r.WaitMs = max(r.WaitMs, known.WaitMs, waitAfter(r.LongestHoldMs()))
	}
	return r
}

// PutBackState returns the state that a node writes after a loss of data: what it knows, with the time least. due is
// false if a node has put back the state in this incarnation, and found lacks nothing. found is nil if there is no
// state.
func PutBackState(found *State, known State, incarnation, least int64) (next State, due bool) {
	next = known
	next.Time, next.PutIn = max(next.Time, least), incarnation
	if found == nil {
		next.Jumped = next.Time
		return next, true
	}
	if found.ToldPutBack() > next.ToldPutBack() {
		next.PutAt = found.PutAt
	}
	if found.Changes > next.Changes {
		next.Changes, next.Changed, next.ChangedAt = found.Changes, found.Changed, found.ChangedAt
	}
	next.Purged, next.Time = max(next.Purged, found.Purged), max(next.Time, found.Time)
	next.Jumped = next.Time
	lacks := next.Changes > found.Changes || next.Purged > found.Purged || next.Time > found.Time
	return next, lacks || found.PutIn < incarnation
}
