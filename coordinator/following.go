package coordinator

// NotFollowed returns the workers of connected nodes that have not followed the changes of named sequences as far as
// at. A node that is cut off does not count: it issues by what it knew before for the sequence's --hold, and no longer.
func NotFollowed(slots []Entry, at Followed) (behind []Entry) {
	for _, e := range slots {
		s := e.Slot.Followed
		if e.Live && (s.Incarnation < at.Incarnation || s.Changes < at.Changes) {
			behind = append(behind, e)
		}
	}
	return behind
}
