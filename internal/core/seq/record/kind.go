package record

// Kind says what a record stands for.
type Kind int

const (
	// None: the name has no record.
	None Kind = iota
	// Sequence issues values.
	Sequence
	// Template issues none: see Record.Create.
	Template
	// Family issues none itself. Its sections do, which have records of their own: see SectionOf.
	Family
	// Tombstone: a sequence, a template or a family with this name was deleted: see Record.Deleted.
	Tombstone
)

// Kind returns the kind of a record, None for nil.
func (r *Record) Kind() Kind {
	switch {
	case r == nil:
		return None
	case r.DeletedAt != 0:
		return Tombstone
	case r.SectionCount > 0:
		return Family
	case r.MaxNames > 0:
		return Template
	}
	return Sequence
}

// Exists reports whether the record is one that was not deleted.
func (r *Record) Exists() bool { return r != nil && r.DeletedAt == 0 }
