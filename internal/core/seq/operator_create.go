package seq

import (
	"cmp"
	"context"
	"errors"
	"fmt"

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
	err := sequence.CheckName(d.Name)
	switch {
	case sequence.IsTemplate(d.Name):
		if err = sequence.CheckTemplate(d.Name); err == nil {
			err = checkMaxNames(d.MaxNames)
		}
	case err == nil && d.MaxNames != 0:
		err = errors.New("max names is for templates only")
	}
	return cmp.Or(err, d.Mode.check(), d.Map.Check(), d.Settings.Check())
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
	return o.update(ctx, d.Name, true, func(st State, old *Record) (Record, error) {
		lost := old.forgets(st)
		switch {
		case old.exists():
			return Record{}, ErrExists
		case lost && !d.StartGiven:
			return Record{}, ErrStartNeeded
		//mutant:s19-early-strict-life by TestNoValueOfAnyLifeComesTwice -> case false:
		case d.Mode.traits().ordered && old != nil && old.Mode.traits().holds && old.IssuableFor(st) > 0:
			return Record{}, ErrTooEarly // its values would come after higher ones (S19)
		}
		r := newRecord(d.Map, d.Settings, st)
		r.Mode, r.MaxNames = d.Mode, d.MaxNames
		return r.after(old, lost)
	})
}

// Check returns an error if the settings are not usable. Its text begins with the setting's name.
func (s Settings) Check() error {
	switch {
	case s.Block < sequence.MinBlock || s.Block > sequence.MaxBlock:
		return fmt.Errorf("block must be %d to %d values, not %d", sequence.MinBlock, sequence.MaxBlock, s.Block)
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
