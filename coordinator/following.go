package coordinator

// NotFollowed returns the workers of connected nodes that have not followed the changes of named sequences as far as
// at. A node that is cut off does not count: it issues by what it knew before for the sequence's --hold, and no longer.
func NotFollowed(slots []Entry, at Followed) (behind []Entry) {
	for _, e := range slots {
		if e.Live && !e.Slot.Followed.Reaches(at) {
			behind = append(behind, e)
		}
	}
	return behind
}

// Reaches reports whether f has the changes as far as at.
func (f Followed) Reaches(at Followed) bool {
	return f.Incarnation >= at.Incarnation && f.Changes >= at.Changes
}

// Absent returns the workers whose last holder is not connected, but may come back with its lease. now is Unix ms.
func (c Cluster) Absent(slots []Entry, now int64) (absent []Entry) {
	for _, e := range slots {
		a := c.JudgeFree(e.Slot, e.Live, now, now)
		if e.Slot.Node != "" && (a == Stopped || a == Disconnected) {
			absent = append(absent, e)
		}
	}
	return absent
}
