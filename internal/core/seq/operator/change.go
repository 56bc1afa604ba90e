package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// ErrExists: the sequence exists already.
var ErrExists = errors.New("sequence exists already")

// ErrStartNeeded: ZooKeeper has lost data before, so the start must be given.
var ErrStartNeeded = errors.New("ZooKeeper has lost data before, so this name may have had values " +
	"that no record knows. It needs a start above all of them")

// Definition has an operator's settings for a new sequence.
type Definition struct {
	Name string
	sequence.Map
	record.Settings
	Mode record.Mode
	// StartGiven: the operator has chosen Map.Start.
	StartGiven bool
	// MaxNames is the number of sequences that a template creates at most. It is 0 unless the name is that
	// of a template.
	MaxNames int64
	// Sections is the number of sections of a family, whose name is that of a template. 0: it is none.
	Sections int
}

// Check returns an error if the definition is not usable. A text about a setting begins with its name.
func (d Definition) Check() error {
	if err := d.Mode.Check(); err != nil {
		return err
	}
	check, many := sequence.CheckName[string], error(nil)
	switch template := positions.IsTemplate(d.Name); {
	case d.Sections != 0 && !(template && d.Mode.Owned()):
		many = errors.New("sections is for families, which are ordered, and whose names end with *, as in msg:*")
	case d.Sections != 0 && d.MaxNames != 0:
		many = errors.New("sections is for a family, and max-names for a template. Give one of them")
	case d.Sections < 0 || d.Sections > positions.MaxSections:
		many = fmt.Errorf("sections must be 1 to %d, not %d", positions.MaxSections, d.Sections)
	case template && d.Sections == 0:
		many = checkMaxNames(d.MaxNames)
	case !template && d.MaxNames != 0:
		many = errors.New("max-names is for templates only")
	}
	if positions.IsTemplate(d.Name) {
		check = positions.CheckTemplate
	}
	return cmp.Or(check(d.Name), many, d.checkLease(), d.Map.Check(), d.Settings.Check())
}

// checkLease returns an error if an owner could not issue the sequence so.
func (d Definition) checkLease() error {
	switch lease := d.Hold(); {
	case !d.Mode.Owned():
		return nil
	case d.Salt != 0:
		return errors.New("salt is not for ordered sequences, because their values must show their order. Leave it out")
	case d.Scatter != 0:
		return errors.New("scatter is not for ordered sequences, because scattered values have no order. Leave it out")
	case lease < record.MinLease || lease > record.MaxLease:
		return fmt.Errorf("lease must be %s to %s, not %s", record.MinLease, record.MaxLease, lease)
	}
	return nil
}

// MostNames is the greatest number of sequences that one template may create. A cluster has 1,000,000 at most.
const MostNames = 1_000_000

func checkMaxNames(n int64) error {
	if n < 1 || n > MostNames {
		return fmt.Errorf("max-names must be 1 to %d, not %d", MostNames, n)
	}
	return nil
}

// Create creates a sequence and returns its record. A name that was deleted begins above all values
// of its earlier lives. It returns the error of Definition.Check, which is no ChangeError, then ErrExists,
// ErrStartNeeded, ErrTooEarly, a ChangeError or a *FamilyError, or an error of update.
func (s Sequences) Create(ctx context.Context, d Definition) (record.Record, error) {
	if err := d.Check(); err != nil {
		return record.Record{}, err
	}
	return s.update(ctx, d.Name, true, func(v seen) (all writes, err error) {
		st, old := *v.State, v.Record
		lost := lacksValues(old, st)
		switch {
		case old.Exists():
			return writes{}, ErrExists
		case old != nil && old.Sections > 0 && d.Sections == 0:
			return writes{}, refused("sections must be given, because this name was a family. Or purge it first")
		case lost && !d.StartGiven:
			return writes{}, ErrStartNeeded
		//mutant:s19-early-strict-life by internal/core/seq:TestNoValueOfAnyLifeComesTwice -> case false:
		case d.Mode.Rises() && old != nil && old.Mode.Holds() && old.IssuableFor(st) > 0:
			return writes{}, ErrTooEarly // its values would come after higher ones (S19)
		}
		switch err := s.checkEnclosing(ctx, d.Name); {
		case err != nil:
			return writes{}, err
		case d.Sections > 0:
			return s.createFamily(ctx, d, v, lost)
		}
		r := record.Fresh(d.Map, d.Settings, st)
		r.Mode, r.MaxNames = d.Mode, d.MaxNames
		all.own, err = newLife(r, old, lost)
		return all, err
	})
}

// newLife returns r, the record of a new life, as it begins after old, the tombstone of the last one. old is nil if
// there is none. lost means that old does not know all values that were issued, so that the operator has given a start
// above them.
func newLife(r record.Record, old *record.Record, lost bool) (record.Record, error) {
	if old != nil {
		r.Gen, r.WaitMs, r.WaitFrom = old.Gen, old.WaitMs, old.WaitFrom
		r.Credit, r.CreditAt = min(r.Credit, old.Credit), old.CreditAt // all lives together keep the ceiling (S6)
		r.Above = old.HighestIssued()
	}
	//mutant:s17-begins-again by seqsim ->
	r.Next = r.PositionAbove(r.Above) // above all values of earlier lives (S17)
	switch {
	case lost && r.Next > 0:
		return record.Record{}, refused("start must be above %d, the highest value that this name is known to have had",
			r.Above)
	case lost:
		r.Above = r.Value(0) - 1
	case goesOn(r, old):
		r.Above, r.Next, r.KeyCheck = old.Above, old.Next, old.KeyCheck
	case r.Next > 0 && r.Scatter > 0:
		return record.Record{}, refused("start must be above %d, the highest value that this name could have before, "+
			"because scattered values have no order. Or all of the map must be as before: "+
			"then the name keeps its key and goes on", r.Above)
	}
	if r.Next >= r.Positions() {
		return record.Record{}, refused("max must be above %d, the highest value that this name could have before "+
			"it was deleted", r.HighestIssued())
	}
	return r.WithPeak(), nil
}

// goesOn reports whether r, a scattered sequence, goes on with the key and the positions of its last life, old. The
// values of still earlier lives are below the start, or that life would not have been created.
func goesOn(r record.Record, old *record.Record) bool {
	return old != nil && r.Scatter > 0 && r.Map == old.Map && old.KeyCheck != ""
}

// lacksValues reports whether values may have been issued of which old, the record of an earlier life, does not know:
// data were lost. old is nil if there is no record.
func lacksValues(old *record.Record, st record.State) bool {
	return old == nil && st.Incarnation > 0 || old != nil && old.Incarnation < st.Incarnation
}

// mapKeyFor returns a new record with the fingerprint of its map key, and the operation that writes that key. old is
// the record whose place it takes, or nil.
func (s Sequences) mapKeyFor(ctx context.Context, r record.Record, old *record.Record) (record.Record, []store.Op, error) {
	if r.KeyCheck == "" {
		r, ops := r.WithMapKey()
		return r, ops, nil
	}
	k, err := s.Key(ctx, *old)
	if errors.Is(err, ErrNoKey) {
		err = refused("start must be above %d, because the key with which the name could go on is missing in ZooKeeper",
			r.Highest(0))
	}
	return r, []store.Op{record.WriteMapKey(r.ID, k)}, err
}

// Change has the settings that an operator changes in a sequence that is in use. nil leaves a value as it is. It has no
// map, which never changes but for a higher max (S20).
type Change struct {
	Settings func(*record.Settings)
	// Max is a new max. It must not be lower than the old one.
	Max *int64
	// Next is the next value to be issued, or the first one of each sequence that a template creates. It must
	// not be lower than the present one.
	Next *int64
	// NextPosition is the next position to be issued, instead of Next. The values of a scattered sequence have
	// no order, so it needs this.
	NextPosition *int64
	// MaxNames is a new Record.MaxNames, for templates only.
	MaxNames *int64
	// VouchedIn is the incarnation in which the operator has made sure that no value from Next on was
	// issued, although ZooKeeper has lost data. 0: the operator has not.
	VouchedIn int64
}

// ErrLostAgain: ZooKeeper has lost data after the operator has made sure of a next value.
var ErrLostAgain = errors.New("ZooKeeper has lost data again, so higher values may have been issued. " +
	"Make sure of the next value once more")

// ChangeError says why a sequence cannot be changed or created so. The text begins with the name of a setting.
type ChangeError string

func (e ChangeError) Error() string { return string(e) }

func refused(format string, a ...any) error { return ChangeError(fmt.Sprintf(format, a...)) }

// Set changes a sequence. Nodes follow at their next heartbeat. It returns ErrNotFound, ErrLostAgain, a ChangeError or
// an error of update.
func (s Sequences) Set(ctx context.Context, name string, c Change) (record.Record, error) {
	return s.update(ctx, name, c.jumps(), func(v seen) (all writes, err error) {
		switch {
		case !v.Record.Exists():
			return writes{}, ErrNotFound
		case v.Record.Kind() == record.Family:
			return c.setFamily(v)
		}
		all.own, err = c.Apply(*v.Record, *v.State)
		return all, err
	})
}

func (c Change) jumps() bool { return c.Next != nil || c.NextPosition != nil }

// Apply returns the record after the change, as Set writes it.
func (c Change) Apply(r record.Record, st record.State) (record.Record, error) {
	if c.VouchedIn != 0 && c.VouchedIn != st.Incarnation {
		return record.Record{}, ErrLostAgain
	}
	if c.Settings != nil {
		before := r.Settings
		r.EarlierHoldMs = r.LongestHoldMs()
		c.Settings(&r.Settings)
		if r.HardCeiling = before.HardCeiling; r.Mode.Owned() && r.HoldMs != before.HoldMs {
			return record.Record{}, refused("lease is %s and cannot change. Delete the sequence, and create it again",
				before.Hold())
		}
	}
	if err := r.Settings.Check(); err != nil {
		return record.Record{}, refused("%s", err)
	}
	if c.MaxNames != nil {
		if r.Kind() != record.Template {
			return record.Record{}, refused("max-names is for templates only")
		}
		if err := checkMaxNames(*c.MaxNames); err != nil {
			return record.Record{}, refused("%s", err)
		}
		r.MaxNames = *c.MaxNames
	}
	if c.Max != nil {
		if *c.Max < r.Max {
			return record.Record{}, refused("max is %d and cannot become lower, so it cannot be %d", r.Max, *c.Max)
		}
		if r.Scatter > 0 && *c.Max != r.Max {
			return record.Record{}, refused("max of a scattered sequence cannot change: positions would get other values")
		}
		r.Max = *c.Max
	}
	if c.jumps() {
		p, err := c.position(r)
		if err != nil {
			return record.Record{}, err
		}
		if r = r.Raised(p); c.VouchedIn != 0 {
			if r.Mode.Owned() && r.Incarnation < st.Incarnation { // the next one waits for a lost owner's lease (O4)
				r.Owner, r.Address, r.OwnedAt = record.LostOwner, "", 0
			}
			r.Incarnation = st.Incarnation // nothing needs to be skipped
		}
		r.From = p
	}
	return r, nil
}

// position returns the position from which a sequence must go on.
func (c Change) position(r record.Record) (p int64, err error) {
	switch {
	case r.Scatter > 0 && r.Kind() == record.Template:
		return 0, refused("next cannot change for a template of scattered sequences. Delete it, and create it again "+
			"with a start above %d", r.Highest(0))
	case c.NextPosition != nil:
		if p = *c.NextPosition; p < r.Next || p >= r.Positions() {
			return 0, refused("next-position must be %d to %d, not %d", r.Next, r.Positions()-1, p)
		}
		return p, nil
	case r.Scatter > 0:
		return 0, refused("next is not for scattered sequences, because their values have no order. " +
			"Give the next position instead")
	}
	switch p = r.PositionAtOrAbove(*c.Next); {
	case p < r.Next:
		return 0, refused("next cannot be %d, because values up to %d may have been issued. Give a higher one",
			*c.Next, r.Highest(r.Next-1))
	case p >= r.Positions():
		return 0, refused("next cannot be %d, because there is no value from there up to the max, %d. "+
			"Give a higher max too, or a lower next value", *c.Next, r.Max)
	}
	return p, nil
}

// writes has the records that an operator writes in one transaction: that of a name, and of a family those of its
// sections. before are the operations that come before these writes.
type writes struct {
	before   []store.Op
	own      record.Record
	sections []sectionWrite
}

type sectionWrite struct {
	entry
	after record.Record
}

// ApplyTo returns a sequence after the change, with all sections of a family.
func (c Change) ApplyTo(n record.Named, st record.State) (after record.Named, err error) {
	after = n
	if after.Record, err = c.Apply(n.Record, st); err != nil {
		return record.Named{}, err
	}
	after.Sections = nil
	for _, s := range n.Sections {
		if s, err = c.ApplyTo(s, st); err != nil {
			return record.Named{}, err
		}
		after.Sections = append(after.Sections, s)
	}
	return after, nil
}
