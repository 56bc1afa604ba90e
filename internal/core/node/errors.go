package node

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/worker"
)

// Setting names a setting of a node or of its cluster.
type Setting string

const (
	SettingLayout        Setting = "layout"
	SettingDatacenter    Setting = "datacenter"
	SettingLease         Setting = "lease"
	SettingConfirmTime   Setting = "confirm-time"
	SettingOnRollback    Setting = "on-rollback"
	SettingBorrow        Setting = "borrow"
	SettingHeartbeat     Setting = "heartbeat"
	SettingSequenceStart Setting = "sequence-start"
	SettingSegmentStart  Setting = "segment-start"
)

// TextError says what is wrong with the text of a setting.
type TextError struct {
	Setting Setting
	Err     error
}

func (e *TextError) Error() string { return fmt.Sprintf("%s: %v", e.Setting, e.Err) }

func (e *TextError) Unwrap() error { return e.Err }

// DiffersError says that the cluster has another value of a setting (Has) than this node asks for (Asked).
type DiffersError struct {
	Setting    Setting
	Asked, Has any
}

func (e *DiffersError) Error() string {
	return fmt.Sprintf("%s %v differs from the cluster's %v", e.Setting, e.Asked, e.Has)
}

// FieldError says that the layout does not have the field that a setting needs. Value is the value of the setting.
type FieldError struct {
	Setting Setting
	Value   any
	Field   string
	Layout  worker.Layout
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s %v needs a layout with a %s field, but %s has none", e.Setting, e.Value, e.Field, e.Layout)
}

// RangeError says that a duration does not fit the other settings.
type RangeError struct {
	Setting Setting // the one to change
	Problem string
	// Least and Most bound the setting. 0 means that there is no such bound.
	Least, Most time.Duration
}

func (e *RangeError) Error() string { return e.Problem }

// StateOfOtherClusterError says that the state directory belongs to another cluster (Ours) than the
// one that the node was started in (Found). Both are names in quotes, or both are UUIDs.
type StateOfOtherClusterError struct{ Ours, Found string }

func (e *StateOfOtherClusterError) Error() string {
	return fmt.Sprintf("the state directory belongs to cluster %s, but the node was started in cluster %s", e.Ours,
		e.Found)
}

// OtherZooKeeperError says that the state directory was last used with another ZooKeeper (State), and that this one
// (Given) does not have the record of its worker. If the node went on here, there could be two copies of the cluster.
type OtherZooKeeperError struct{ State, Given string }

func (e *OtherZooKeeperError) Error() string {
	return fmt.Sprintf("the state directory was last used with ZooKeeper %s, but ZooKeeper %s has no record of its "+
		"worker", e.State, e.Given)
}

// LostClusterError says that ZooKeeper does not have the cluster that the state directory knows from there.
type LostClusterError struct {
	Name string
	err  error
}

func (e *LostClusterError) Error() string {
	return fmt.Sprintf("%s (name %q), but the state directory is of a node that has served in it", e.err, e.Name)
}
func (e *LostClusterError) Unwrap() error { return e.err }

// ClockError says why this machine's clock must not be used for IDs: it is wrong, or too far
// behind what may have been issued already.
type ClockError struct{ Reason string }

func (e *ClockError) Error() string { return e.Reason }
