package seqstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/zkstore"
)

// Operator has the commands of an operator on the sequences of a cluster. No value is issued twice,
// although nodes take blocks at the same time.
type Operator struct {
	Store zkstore.Store
	// Now returns Unix milliseconds.
	Now func() int64
	By  string
	// Guard is called with Store before a Jump. The jump is written together with the operations that it
	// returns, or not at all if it returns an error. nil: jumps are written at once.
	Guard func(context.Context, zkstore.Store, Jump) ([]zkstore.Op, error)
}

// Jump is a change that the skip after a loss of data does not cover: a creation, a deletion, or a raised
// next value. If ZooKeeper loses it, a node must put it back. So nodes should follow each jump before the
// next one of the same name.
type Jump struct {
	Creates bool
	// After is the last change of the name. It may be a later one of another name. It is zero for a
	// name that is new.
	After Followed
}

// ErrNoState: no node of this cluster has served sequences yet.
var ErrNoState = errors.New("no node of this cluster has served sequences yet")

// ErrExists: the sequence exists already.
var ErrExists = errors.New("sequence exists already")

// ErrNotFound: there is no sequence with this name.
var ErrNotFound = errors.New("sequence not found")

// ErrStartNeeded: ZooKeeper has lost data before, so the start must be given.
var ErrStartNeeded = errors.New("ZooKeeper has lost data before, so a sequence with this name may have existed. It needs a start above all values that were issued")

// ErrStartTooLow: the name had values, and a scattered sequence would give them out again.
var ErrStartTooLow = errors.New("start must be above")

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
	// First is the lowest value to begin with. At or below Map.Start it means Map.Start.
	First int64
	// Held and Source are those of the Record.
	Held   bool
	Source string
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
	return cmp.Or(err, d.Map.Check(), d.Settings.Check())
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
// of its earlier life. It returns ErrExists, ErrNoState, ErrStartNeeded or ErrTooEarly.
func (o Operator) Create(ctx context.Context, d Definition) (Record, error) {
	if err := d.Check(); err != nil {
		return Record{}, err
	}
	return o.update(ctx, d.Name, &Jump{Creates: true}, func(st State, old *Record) (Record, error) {
		switch {
		case old != nil && old.DeletedAt == 0:
			return Record{}, ErrExists
		case old.forgets(st, d.Mode) && !d.StartGiven:
			return Record{}, ErrStartNeeded
		case d.Mode == Strict && old.mayIssue(st.Epoch, o.Now()):
			return Record{}, ErrTooEarly // those values would come after higher ones of the strict life
		}
		r := newRecord(d.Map, d.Settings, st, o.Now())
		r.Mode, r.MaxNames, r.Held, r.Source = d.Mode, d.MaxNames, d.Held, d.Source
		if old != nil {
			r.Gen, r.Credit, r.At = old.Gen, old.Credit, old.At
			if !old.forgets(st, d.Mode) { // else the operator has given the start in this epoch
				r.Epoch = old.Epoch
			}
			r.HardCeiling = max(r.HardCeiling, old.HardCeiling)
			if last, used := old.lastUsed(st.Epoch, o.Now()); used {
				if r.Next = r.PositionAbove(last); r.Next > 0 && r.Scatter > 0 {
					return Record{}, fmt.Errorf("%w %d, the highest value that this name could have before, because scattered values have no order", ErrStartTooLow, last)
				}
			}
			if old.IsTemplate() && old.Scatter > 0 {
				r.Epoch = st.Epoch // the new values are above all that lost sequences can have had
			}
		}
		r.Next = max(r.Next, r.PositionAtOrAbove(d.First))
		return r.withPeak(), nil
	})
}

// forgets reports whether values may have been issued of which old, the record of an earlier life, does not know: data
// were lost. If both lives are in segment mode, the ceiling bounds them, and the new life skips them. old is nil if
// there is no record, and mode is that of the new life.
func (old *Record) forgets(st State, mode Mode) bool {
	return old == nil && st.Epoch > 1 || old != nil && (old.Mode == Strict || mode == Strict) && old.Epoch < st.Epoch
}

// mayIssue reports whether a node that is cut off may still issue values of old, the record of an earlier life. old is nil if
// there is no record.
func (old *Record) mayIssue(epoch, now int64) bool {
	if old == nil || old.Mode == Strict || now >= old.PurgeableAt() {
		return false
	}
	_, used := old.lastUsed(epoch, now)
	return used
}

// lastUsed returns the highest value that may have been issued, also after this record if ZooKeeper has
// lost a later one. used is false if there is none.
func (r Record) lastUsed(epoch, now int64) (v int64, used bool) {
	if r.IsTemplate() && r.Scatter > 0 {
		return r.Highest(0), true // its sequences have keys of their own
	}
	next := min(r.Next, r.Positions())
	if r.Epoch < epoch && !r.IsTemplate() && r.Mode == Segment {
		skip, _ := r.skip(epoch, now)
		next += min(skip, r.Positions()-next)
		first := sequence.Ceiling(r.HardCeiling).Burst() / firstBlockPart // taken after a skip that is lost too
		next += min(first, r.Positions()-next)
	}
	if next == 0 {
		return 0, false
	}
	return r.Highest(next - 1), true
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
		return fmt.Errorf("ceiling must be at most the hard ceiling of %d values a second, not %d", s.HardCeiling, s.Ceiling)
	case len(s.Note) > 64:
		return fmt.Errorf("note must have at most 64 bytes, not %d", len(s.Note))
	}
	return nil
}

// Change is what an operator changes about a sequence that is in use. nil leaves a value as it is.
type Change struct {
	Settings func(*Settings)
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
	// VouchedIn is the epoch in which the operator has made sure that no value from Next on was
	// issued, although ZooKeeper has lost data or a clock was wrong. 0: the operator has not.
	VouchedIn int64
}

// ErrLostAgain: ZooKeeper has lost data after the operator has made sure of a next value.
var ErrLostAgain = errors.New("ZooKeeper has lost data again, so higher values may have been issued. Make sure of the next value once more")

// Set changes a sequence. Nodes follow at their next heartbeat.
func (o Operator) Set(ctx context.Context, name string, c Change) (Record, error) {
	var jump *Jump
	if c.Next != nil || c.NextPosition != nil {
		jump = &Jump{}
	}
	return o.update(ctx, name, jump, func(st State, old *Record) (Record, error) {
		if old == nil || old.DeletedAt != 0 {
			return Record{}, ErrNotFound
		}
		if c.VouchedIn != 0 && c.VouchedIn != st.Epoch {
			return Record{}, ErrLostAgain
		}
		r := *old
		if c.Settings != nil {
			c.Settings(&r.Settings)
			r.HardCeiling = old.HardCeiling
		}
		if err := r.Settings.Check(); err != nil {
			return Record{}, err
		}
		if c.MaxNames != nil {
			if !r.IsTemplate() {
				return Record{}, errors.New("max-names is for templates only")
			}
			if err := checkMaxNames(*c.MaxNames); err != nil {
				return Record{}, err
			}
			r.MaxNames = *c.MaxNames
		}
		if c.Max != nil {
			if *c.Max < r.Max {
				return Record{}, fmt.Errorf("max is %d, and cannot become lower", r.Max)
			}
			if r.Scatter > 0 && *c.Max != r.Max {
				return Record{}, errors.New("the max of a scattered sequence cannot change: positions would get other values")
			}
			r.Max = *c.Max
		}
		if jump != nil {
			p, err := c.position(r)
			if err != nil {
				return Record{}, err
			}
			if r = r.raised(p); c.VouchedIn != 0 {
				r.Epoch = st.Epoch // nothing needs to be skipped
				// The clock of a node that took a block, or of the creator, may have been ahead.
				r.At, r.PeakAt = min(r.At, o.Now()), min(r.PeakAt, o.Now())
			}
			r.From = p
		}
		return r, nil
	})
}

// position returns the position from which a sequence must go on.
func (c Change) position(r Record) (p int64, err error) {
	switch {
	case r.Scatter > 0 && r.IsTemplate():
		return 0, fmt.Errorf("a template of scattered sequences has no next value. Delete it, and create it again with a start above %d", r.Highest(0))
	case c.NextPosition != nil:
		if p = *c.NextPosition; p < r.Next || p >= r.Positions() {
			return 0, fmt.Errorf("the next position must be %d to %d, not %d", r.Next, r.Positions()-1, p)
		}
		return p, nil
	case r.Scatter > 0:
		return 0, errors.New("scattered values have no order. Give the next position instead of the next value")
	}
	if p = r.PositionAtOrAbove(*c.Next); p < r.Next {
		return 0, fmt.Errorf("values up to %d may have been issued, so the next one cannot be %d", r.Highest(r.Next-1), *c.Next)
	}
	return p, nil
}

// Delete deletes a sequence. Its record stays as a tombstone, so that the name does not begin again
// with values that were issued.
func (o Operator) Delete(ctx context.Context, name string) (Record, error) {
	r, err := o.update(ctx, name, &Jump{}, func(st State, old *Record) (Record, error) {
		if old == nil || old.DeletedAt != 0 {
			return Record{}, ErrNotFound
		}
		r := *old
		r.DeletedAt = max(1, o.Now())
		r.Gen = max(r.Gen, st.Purged)
		return r, nil
	})
	if err == nil {
		o.forgetKeys(ctx, r)
	}
	return r, err
}

// ErrTooEarly: a tombstone must stay for longer.
var ErrTooEarly = errors.New("nodes that are cut off may still issue values of this sequence. Try again when `flaked seq purge` may remove it")

// Purge removes the tombstone of a deleted sequence. Then nothing remembers which values were issued: a
// new sequence with this name begins where its definition says. It returns ErrTooEarly until the longest
// hold that the sequence has ever had has passed since it was deleted.
func (o Operator) Purge(ctx context.Context, name string) error {
	for {
		v, ctx, err := o.look(ctx, name)
		switch {
		case err != nil:
			return err
		case v.record == nil:
			return ErrNotFound
		case v.record.DeletedAt == 0:
			return errors.New("the sequence is in use. Delete it first")
		case o.Now() < v.record.PurgeableAt():
			return ErrTooEarly
		}
		if err := o.deleteKey(ctx, v.record.ID); err != nil {
			return err
		}
		next := v.state.after(name)
		next.Purged = max(next.Purged, v.record.Gen)
		if _, err = o.Store.Set(ctx, statePath, next.marshal(), v.version); err == nil {
			o.forgetKeys(ctx, *v.record)
			err = o.Store.Delete(ctx, recordPath(name), v.stat.Version)
		}
		if !outpaced(err) {
			return err
		}
	}
}

// outpaced reports whether a write failed because another one was faster.
func outpaced(err error) bool {
	return errors.Is(err, zkstore.ErrBadVersion) || errors.Is(err, zkstore.ErrExists) || errors.Is(err, zkstore.ErrNoNode)
}

// Named is a record with its name.
type Named struct {
	Name string `json:"name"`
	Record
}

// List returns the sequences whose names begin with prefix, and the tombstones, by name. It returns
// ErrNoState if no node has served sequences yet.
func (o Operator) List(ctx context.Context, prefix string) ([]Named, State, error) {
	v, _, err := o.look(ctx, "x")
	if err != nil {
		return nil, State{}, err
	}
	buckets, err := o.Store.Children(ctx, recordsDir)
	if errors.Is(err, zkstore.ErrNoNode) {
		return nil, *v.state, nil
	}
	if err != nil {
		return nil, State{}, err
	}
	found := make([][]Named, len(buckets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for k, bucket := range buckets {
		group.Go(func() (err error) {
			found[k], err = o.inBucket(ctx, recordsDir+"/"+bucket, prefix)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, State{}, err
	}
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return all, *v.state, nil
}

func (o Operator) inBucket(ctx context.Context, dir, prefix string) ([]Named, error) {
	children, err := o.Store.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	var names, paths []string
	for _, child := range children {
		if name := strings.ReplaceAll(child, "%2F", "/"); strings.HasPrefix(name, prefix) {
			names, paths = append(names, name), append(paths, dir+"/"+child)
		}
	}
	found, err := o.Store.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var all []Named
	for k, f := range found {
		if !f.Found {
			continue // purged meanwhile
		}
		r, err := parseRecord(f.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[k], err)
		}
		all = append(all, Named{names[k], r})
	}
	return all, nil
}

// State returns the state of all sequences, and when it was last changed by ZooKeeper's clock, in Unix ms. It
// returns ErrNoState if no node has served sequences yet, and ErrDamaged.
func (o Operator) State(ctx context.Context) (st State, changedMs int64, err error) {
	found, err := o.Store.GetAll(ctx, statePath)
	if err != nil {
		return State{}, 0, err
	}
	v, err := parseView(found)
	switch {
	case err != nil:
		return State{}, 0, fmt.Errorf("%w: %w", ErrDamaged, err)
	case v.state == nil:
		return State{}, 0, ErrNoState
	}
	return *v.state, found[0].Stat.Mtime, nil
}

// Show returns the record of a sequence, or of its tombstone, and the state of all sequences. It
// returns ErrNotFound if there is none.
func (o Operator) Show(ctx context.Context, name string) (Record, State, error) {
	v, _, err := o.look(ctx, name)
	if err != nil {
		return Record{}, State{}, err
	}
	if v.record == nil {
		return Record{}, *v.state, ErrNotFound
	}
	return *v.record, *v.state, nil
}

// update changes a record and /seq in one write, and tries again if another write was faster. old is
// nil if there is no record, and jump is nil for other changes.
func (o Operator) update(ctx context.Context, name string, jump *Jump, change func(st State, old *Record) (Record, error)) (Record, error) {
	for {
		v, bound, err := o.look(ctx, name)
		if err != nil {
			return Record{}, err
		}
		r, err := change(*v.state, v.record)
		if err != nil {
			return Record{}, err
		}
		if v.record != nil {
			r.EarlierHoldMs = v.record.LongestHoldMs()
		}
		var key []zkstore.Op
		if v.record == nil || v.record.ID != r.ID {
			r, key = r.withKey()
		}
		r = commit{record: r}.written(nonce(), o.By)
		if data := r.marshal(); len(data) > maxRecord {
			return Record{}, fmt.Errorf("the record of the sequence has %d bytes, at most %d are allowed. Use a shorter note", len(data), maxRecord)
		}
		also, err := o.guard(ctx, name, jump, v)
		if err != nil {
			return Record{}, err
		}
		if err = o.write(bound, name, v, r, append(also, key...)); err == nil && v.record != nil && v.record.ID != r.ID {
			err = o.deleteKey(ctx, v.record.ID)
		}
		if !outpaced(err) {
			return r, err
		}
	}
}

func (o Operator) guard(ctx context.Context, name string, jump *Jump, v view) ([]zkstore.Op, error) {
	if jump == nil || o.Guard == nil {
		return nil, nil
	}
	after := Followed{Changes: v.state.lastChange(name) + 1, Epoch: v.state.Epoch}
	if v.record == nil && !slices.Contains(v.state.Changed, name) {
		after = Followed{}
	}
	return o.Guard(ctx, o.Store, Jump{jump.Creates, after})
}

// look reads /seq and a record. Writes that go by them must use the context that look returns: in another
// session ZooKeeper may have lost data, and versions may have come back.
func (o Operator) look(ctx context.Context, name string) (view, context.Context, error) {
	if err := o.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return view{}, ctx, err
	}
	ctx = zkstore.OnSession(ctx, o.Store.SessionID())
	found, err := o.Store.GetAll(ctx, statePath, recordPath(name))
	if err != nil {
		return view{}, ctx, err
	}
	v, err := parseView(found)
	if err == nil && v.state == nil {
		err = ErrNoState
	}
	return v, ctx, err
}

func (o Operator) write(ctx context.Context, name string, v view, r Record, also []zkstore.Op) error {
	state := zkstore.SetOp{Path: statePath, Data: v.state.after(name).marshal(), Version: v.version}
	if v.record == nil || r.Keyed() {
		if err := o.Store.EnsureRoot(ctx, r.dirs(name)...); err != nil {
			return err
		}
	}
	if v.record != nil {
		return o.Store.Multi(ctx, append(setRecord(state, name, r, v.stat.Version), also...)...)
	}
	return o.Store.Multi(ctx, append(also, state, zkstore.CreateOp{Path: recordPath(name), Data: r.marshal()})...)
}
