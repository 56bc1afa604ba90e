package record

// A template is a record whose name ends with *, such as order:*. It issues no values itself. If a node is
// asked for an unknown name that a template matches, it creates the sequence with the template's values and
// settings (S22). Among several templates that match, the one with the longest name counts.

// Create returns the template after it has created a sequence, and the sequence. name is the template's.
func (r Record) Create(name string, st State) (template, created Record, refusal *Refusal) {
	switch {
	//mutant:s15-template by seqsim -> case false:
	case r.Incarnation != st.Incarnation: // a sequence of this name may be lost, and would begin again (S15)
		if r.Scatter > 0 {
			return Record{}, Record{}, frozenScattered(name, r.Highest(0))
		}
		return Record{}, Record{}, frozenTemplate(name)
	//mutant:s22-max-names by internal/core/seq:TestTemplateCreatesNoMoreThanItMay -> case false:
	case r.Names >= r.MaxNames:
		return Record{}, Record{}, allCreated(name, r.Names)
	}
	created = Fresh(r.Map, r.Settings, st)
	created.Mode, created.Next, created.Above = r.Mode, r.Next, r.Above
	r.Names++
	return r, created.WithPeak(), nil
}
