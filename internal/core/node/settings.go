package node

import (
	"cmp"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// Setting names a setting of a node or of its cluster. The flags of the command line have these names.
type Setting string

const (
	SettingLayout        = "layout"
	SettingDatacenter    = "datacenter"
	SettingLease         = "lease"
	SettingConfirmTime   = "confirm-time"
	SettingOnRollback    = "on-rollback"
	SettingBorrow        = "borrow"
	SettingSequenceStart = "sequence-start"
	SettingSegmentStart  = "segment-start"

	SettingCluster      = "cluster"
	SettingHeartbeat    = "heartbeat"
	SettingReserve      = "reserve"
	SettingStartTimeout = "start-timeout"
	SettingName         = "name"
	SettingAddress      = "address"
	SettingAdmin        = "admin"
)

// defaultLease is the longest lease of a new cluster if Settings.Lease is nil.
const defaultLease = 24 * time.Hour

// maxSlots bounds how many of a layout's workers a cluster uses. Each worker is a record that stays in ZooKeeper, and
// nodes without a state directory use every worker before one is used again. 65,536 records take about 30 MB of
// ZooKeeper's memory. The four million workers of uid-generator would take two gigabytes.
const maxSlots = 1 << 16

// Slots returns how many workers a cluster of this layout has: all of the layout's, but at most 65,536.
func Slots(l worker.Layout) int { return min(l.Workers(), maxSlots) }

// Settings are the cluster settings that the user asks for. A nil field accepts the value of
// the cluster record. If a node creates that record, nil means the default.
type Settings struct {
	// Layout is by default worker.Leaf.
	Layout *worker.Layout
	// Datacenter is by default 0.
	Datacenter *int64
	// Lease is the longest lease, 1 s or more, by default 24 h. ConfirmTime is the confirming time, 410 ms to 1 h. By
	// default it is two heartbeats and 6 s, so 12 s for a heartbeat of 3 s. It may be 0 for a store in memory.
	Lease, ConfirmTime *time.Duration
	// OnRollback is the policy for a clock that goes back. The default is to count rollbacks
	// if the layout has a rollback field, otherwise Leaf's rule.
	OnRollback *timeguard.RollbackPolicy
	// Borrow is how far ahead of the clock a burst may make IDs, in whole milliseconds. The default is 0.
	Borrow *time.Duration
	// SequenceStart is where the sequence field of an ID begins in a tick. It has nothing to
	// do with named sequences. The default is worker.StartRandom.
	SequenceStart *worker.SequenceStart
	// SegmentStart is the segment that a tick begins in. The default is worker.SegmentZero.
	SegmentStart *worker.SegmentStart
}

// Texts are the settings that a user writes as text. nil: not given.
type Texts struct{ Layout, OnRollback, SequenceStart, SegmentStart *string }

// Read reads them into s. The error is a *ValueError.
func (t Texts) Read(s *Settings) error {
	return cmp.Or(
		read(SettingLayout, t.Layout, worker.ParseLayout, &s.Layout),
		read(SettingOnRollback, t.OnRollback, timeguard.ParseRollbackPolicy, &s.OnRollback),
		read(SettingSequenceStart, t.SequenceStart, worker.ParseSequenceStart, &s.SequenceStart),
		read(SettingSegmentStart, t.SegmentStart, worker.ParseSegmentStart, &s.SegmentStart),
	)
}

func read[T any](name Setting, text *string, parse func(string) (T, error), to **T) error {
	if text == nil {
		return nil
	}
	v, err := parse(*text)
	if err != nil {
		return &ValueError{name, err}
	}
	*to = &v
	return nil
}

// Record returns the record of a new cluster with these settings, and the defaults for those
// that are nil. heartbeat is that of the slowest node: the default confirming time depends on
// it. Record returns an error for settings that are out of range or do not fit each other.
func (s Settings) Record(uuid string, heartbeat time.Duration) (coordinator.Cluster, error) {
	layout, datacenter := or(s.Layout, worker.Leaf()), or(s.Datacenter, 0)
	lease, confirm := or(s.Lease, defaultLease), or(s.ConfirmTime, limits.DefaultConfirm(heartbeat))
	borrow := or(s.Borrow, 0)
	if _, err := layout.Encode(worker.Fields{Datacenter: datacenter}); err != nil {
		return coordinator.Cluster{}, &ValueError{SettingDatacenter, err}
	}
	if err := checkRange(lease, confirm, borrow); err != nil {
		return coordinator.Cluster{}, err
	}
	cl := coordinator.Cluster{
		UUID: uuid, Layout: layout.String(), Slots: Slots(layout), Datacenter: datacenter,
		LeaseMs: lease.Milliseconds(), ConfirmMs: confirm.Milliseconds(), BorrowMs: borrow.Milliseconds(),
		HighestSlot: -1,
	}
	// The record leaves out what nobody asked for.
	switch {
	case s.OnRollback != nil:
		cl.OnRollback = s.OnRollback.String()
	case layout.RollbackBits > 0:
		cl.OnRollback = timeguard.CountRollbacks.String()
	}
	if s.SequenceStart != nil {
		cl.SequenceStart = s.SequenceStart.String()
	}
	if s.SegmentStart != nil {
		cl.SegmentStart = s.SegmentStart.String()
	}
	_, err := parseRules(cl)
	return cl, err
}

// checkRange returns a *RangeError for a duration that no cluster may have.
func checkRange(lease, confirm, borrow time.Duration) error {
	switch {
	case lease < time.Second:
		return &RangeError{Setting: SettingLease, Least: time.Second, Problem: fmt.Sprintf("the lease %s is too short",
			lease)}
	case confirm != 0 && confirm < limits.MinConfirm || confirm > time.Hour:
		return &RangeError{Setting: SettingConfirmTime, Least: limits.MinConfirm, Most: time.Hour,
			Problem: fmt.Sprintf("the confirming time %s is out of range", confirm)}
	case borrow%time.Millisecond != 0:
		return &RangeError{Setting: SettingBorrow,
			Problem: fmt.Sprintf("borrow %s must be a whole number of milliseconds", borrow)}
	}
	return nil
}

// or returns what was asked for, or the default.
func or[T any](asked *T, otherwise T) T {
	if asked == nil {
		return otherwise
	}
	return *asked
}

// Agree returns a *DiffersError for the first setting of a cluster that is not as asked for, or nil.
func (s Settings) Agree(cl coordinator.Cluster) error {
	has := Describe("", cl)
	return cmp.Or(
		differs(SettingLayout, s.Layout, has.Layout),
		differs(SettingDatacenter, s.Datacenter, has.Datacenter),
		differs(SettingLease, whole(s.Lease), ms(has.LeaseMs)),
		differs(SettingConfirmTime, whole(s.ConfirmTime), ms(has.ConfirmMs)),
		differs(SettingOnRollback, s.OnRollback, has.OnRollback),
		differs(SettingBorrow, whole(s.Borrow), ms(has.BorrowMs)),
		differs(SettingSequenceStart, s.SequenceStart, has.SequenceStart),
		differs(SettingSegmentStart, s.SegmentStart, has.SegmentStart),
	)
}

// differs returns a *DiffersError if a value is asked for, and has is not printed as that value is.
func differs[T any](of Setting, asked *T, has any) error {
	if asked == nil || fmt.Sprint(*asked) == fmt.Sprint(has) {
		return nil
	}
	return &DiffersError{of, *asked, has}
}

// whole returns a duration as the record has it: in whole milliseconds.
func whole(d *time.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return new(d.Truncate(time.Millisecond))
}

// Describe returns a cluster's record as reports show it: each setting that the record leaves out has its default. All
// fields but Name are zero if there is no record yet.
func Describe(name string, cl coordinator.Cluster) ClusterSnapshot {
	if cl.Layout == "" {
		return ClusterSnapshot{Name: name}
	}
	d := ClusterSnapshot{
		Name: name, UUID: cl.UUID, Layout: cl.Layout, Slots: cl.Slots, Datacenter: cl.Datacenter,
		LeaseMs: cl.LeaseMs, ConfirmMs: cl.ConfirmMs, BorrowMs: cl.BorrowMs,
		OnRollback:    cmp.Or(cl.OnRollback, timeguard.RollbackPolicy{}.String()),
		SequenceStart: worker.SequenceStart(cl.SequenceStart).String(),
		SegmentStart:  worker.SegmentStart(cl.SegmentStart).String(),
		Used:          cl.HighestSlot + 1,
	}
	if layout, err := worker.ParseLayout(cl.Layout); err == nil {
		d.IDsEndMs = new(layout.Expires().UnixMilli())
	}
	return d
}
