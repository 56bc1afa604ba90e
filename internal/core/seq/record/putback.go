package record

// PutBack returns the record that a node writes after a loss of data (S8): the newer one of found and known. It may be
// of another life than known. Its next position is the highest that the node has seen of that life. due is false if
// found, the record in ZooKeeper, needs no change. found is nil if ZooKeeper has none.
//
// Of two writes with one write count, either one will do if it has the higher next position. If they are of two lives
// of the name, the one whose values go further comes back. The write count then grows above both.
//
// A node may come back after others have taken positions in the present incarnation. If found does not know of a raised
// next position, no block will leave out what was taken from there before the loss: it may lie above found, also if the
// raised position does not. So the put-back leaves it out (S13). incarnation is the present one, and seqTime the present
// sequence time.
func PutBack(found *Record, known Record, highest, incarnation, seqTime int64) (next Record, due bool) {
	//mutant:s8-lower-put-back by TestPutBack -> known = known.Raised(known.Next)
	known = known.Raised(max(known.Next, highest))
	if found == nil {
		return known, true
	}
	//mutant:s13-raised-late by TestPutBack -> if false {
	if found.Incarnation > known.Incarnation && known.knowsRaise(*found) && known.GoesOnAlone() {
		skip, _ := known.skip(incarnation, seqTime)
		known = known.Raised(known.Next + min(skip, max(0, known.Positions()-known.Next)))
	}
	next, older, rivals := *found, known.Newer(*found), known.Rivals(*found)
	if older || rivals && found.ID != known.ID && known.HighestIssued() > found.HighestIssued() {
		next = known
	}
	if found.ID == known.ID { // else it is another life of the name, with positions of its own
		next = next.Raised(max(found.Next, known.Next)).withHoldsOf(known).withHoldsOf(*found)
		next.RaisedTo = max(found.RaisedTo, known.RaisedTo)
	}
	next.WriteCount = max(found.WriteCount, known.WriteCount)
	return next, older || rivals || next.Next > found.Next || next.EarlierHoldMs > found.EarlierHoldMs ||
		next.WaitMs > found.WaitMs || next.RaisedTo > found.RaisedTo
}

// knowsRaise reports whether r, a copy of an earlier incarnation, shows that found does not know of a raised next
// position.
func (r Record) knowsRaise(found Record) bool {
	//mutant:s13-small-raise-late by internal/core/seq:TestLatePutBackSkipsOverASmallRaise -> return r.Next > found.Next
	return r.Next > found.Next || r.ID == found.ID && r.RaisedTo > found.RaisedTo
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
