package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/seq/record"
)

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
func (s Commands) Set(ctx context.Context, name string, c Change) (record.Record, error) {
	return s.update(ctx, name, c.jumps(), func(v view) (all writes, err error) {
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
		r.RaisedTo = p
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
