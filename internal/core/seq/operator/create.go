package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
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
	switch template := positions.IsPattern(d.Name); {
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
	if positions.IsPattern(d.Name) {
		check = positions.CheckPattern
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
func (s Commands) Create(ctx context.Context, d Definition) (record.Record, error) {
	if err := d.Check(); err != nil {
		return record.Record{}, err
	}
	return s.update(ctx, d.Name, true, func(v view) (all writes, err error) {
		st, old := *v.State, v.Record
		lost := lacksValues(old, st)
		switch {
		case old.Exists():
			return writes{}, ErrExists
		case old != nil && old.SectionCount > 0 && d.Sections == 0:
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

// newLife returns r, the record of a new life, as it begins after old, the tombstone of the last one. old is nil
// for a name that has no record. lost: values may have been issued that old does not show, so the operator has given a
// start above all of them.
func newLife(r record.Record, old *record.Record, lost bool) (record.Record, error) {
	if old != nil {
		r.WriteCount, r.WaitMs, r.WaitFrom = old.WriteCount, old.WaitMs, old.WaitFrom
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
// ZooKeeper has lost data. old is nil for a name that has no record.
func lacksValues(old *record.Record, st record.State) bool {
	return old == nil && st.Incarnation > 0 || old != nil && old.Incarnation < st.Incarnation
}
