package record

// Named is a record with its name. That of a family has the furthest next position of its sections, and the number of
// all their ownerships as Term.
type Named struct {
	Name string
	Record
	// Sections are those of a family, by their numbers. Those that ZooKeeper has lost are missing.
	Sections []Named
	// WrittenAt is the time at which the record was last written, Unix ms of ZooKeeper's leader.
	WrittenAt int64
	// Err is ErrDamaged or ErrUnknownMode if the record cannot be used. Record is empty then.
	Err error
}
