package seq

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/sequence"
)

// ErrExists: the sequence exists already.
var ErrExists = errors.New("sequence exists already")

// ErrStartNeeded: ZooKeeper has lost data before, so the start must be given.
var ErrStartNeeded = errors.New("ZooKeeper has lost data before, so this name may have had values " +
	"that no record knows. It needs a start above all of them")

// Definition is what an operator says of a sequence that is created.
type Definition struct {
	Name string
	sequence.Map
	Settings
	Mode Mode
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
	if err := d.Mode.check(); err != nil {
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
	switch lease := d.hold(); {
	case !d.Mode.Owned():
		return nil
	case d.Salt != 0:
		return errors.New("salt is not for ordered sequences, because their values must show their order. Leave it out")
	case d.Scatter != 0:
		return errors.New("scatter is not for ordered sequences, because scattered values have no order. Leave it out")
	case lease < MinLease || lease > MaxLease:
		return fmt.Errorf("lease must be %s to %s, not %s", MinLease, MaxLease, lease)
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
// of its earlier lives. It returns ErrExists, ErrNoState, ErrStartNeeded, ErrTooEarly or a ChangeError.
func (o Operator) Create(ctx context.Context, d Definition) (Record, error) {
	if err := d.Check(); err != nil {
		return Record{}, err
	}
	return o.update(ctx, d.Name, true, func(v seen) (all changed, err error) {
		st, old := *v.state, v.record
		lost := forgets(old, st)
		switch {
		case old.exists():
			return changed{}, ErrExists
		case old != nil && old.Sections > 0 && d.Sections == 0:
			return changed{}, refused("sections must be given, because this name was a family. Or purge it first")
		case lost && !d.StartGiven:
			return changed{}, ErrStartNeeded
		//mutant:s19-early-strict-life by TestNoValueOfAnyLifeComesTwice -> case false:
		case d.Mode.Rises() && old != nil && old.Mode.Holds() && old.IssuableFor(st) > 0:
			return changed{}, ErrTooEarly // its values would come after higher ones (S19)
		}
		switch err := o.checkOuter(ctx, d.Name); {
		case err != nil:
			return changed{}, err
		case d.Sections > 0:
			return o.createFamily(ctx, d, v, lost)
		}
		r := newRecord(d.Map, d.Settings, st)
		r.Mode, r.MaxNames = d.Mode, d.MaxNames
		all.own, err = newLife(r, old, lost)
		return all, err
	})
}

// Check returns an error if the settings are not usable. Its text begins with the setting's name.
func (s Settings) Check() error {
	switch {
	case s.Block < positions.MinBlock || s.Block > positions.MaxBlock:
		return fmt.Errorf("block must be %d to %d values, not %d", positions.MinBlock, positions.MaxBlock, s.Block)
	case s.SupplyMs < 1:
		return errors.New("supply must be 1ms or more")
	case s.HoldMs < 1:
		return errors.New("hold must be 1ms or more")
	case s.Ceiling < 1:
		return fmt.Errorf("ceiling must be 1 or more values a second, not %d", s.Ceiling)
	case s.Ceiling > s.HardCeiling:
		return fmt.Errorf("ceiling must be at most the hard ceiling of %d values a second, not %d",
			s.HardCeiling, s.Ceiling)
	}
	return nil
}
