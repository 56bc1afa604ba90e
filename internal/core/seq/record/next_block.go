package record

// NextBlockOutlook has the facts about the next block that follow from the record of a sequence.
type NextBlockOutlook struct {
	// Refusal is the reason for which a node gets no block now. It is empty if the node gets one.
	Refusal Reason
	// Skip is the number of positions that the next block leaves out, because they may have been issued before
	// ZooKeeper lost data. It is 0 if there is a Refusal.
	Skip int64
}

// NextBlockOutlook returns what a node that has just read st would decide about a block of one position. It is empty
// for a family.
func (r Record) NextBlockOutlook(st State) NextBlockOutlook {
	var c Write
	var refusal *Refusal
	switch {
	case r.SectionCount > 0: // its sections have records of their own
		return NextBlockOutlook{}
	case r.MaxNames > 0:
		_, _, refusal = r.Create("", st)
		c.Block.First = r.Next // a template skips nothing
	case r.Mode == Strict:
		c, refusal = r.PlanStrict(st.Incarnation, 1, st.Time)
	default:
		c, refusal = r.Plan(st.Incarnation, 1, 1, st.Time)
	}
	if refusal != nil {
		return NextBlockOutlook{Refusal: refusal.Why()}
	}
	return NextBlockOutlook{Skip: c.Block.First - r.Next}
}
