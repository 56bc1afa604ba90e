package node

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/worker"
)

// Setting names a setting of a node or of its cluster.
type Setting string

const (
	SettingLayout       Setting = "layout"
	SettingDatacenter   Setting = "datacenter"
	SettingLease        Setting = "lease"
	SettingSettle       Setting = "settle"
	SettingOnRollback   Setting = "on-rollback"
	SettingBorrow       Setting = "borrow"
	SettingHeartbeat    Setting = "heartbeat"
	SettingReserve      Setting = "reserve"
	SettingSegmentStart Setting = "segment-start"
)

// DiffersError: the cluster was made with another value of a setting.
type DiffersError struct {
	Setting    Setting
	Asked, Has any
}

func (e *DiffersError) Error() string {
	return fmt.Sprintf("node: %s %v was asked for, where the cluster has %v", e.Setting, e.Asked, e.Has)
}

// FieldError: the layout does not have the field that a setting needs.
type FieldError struct {
	Setting Setting
	Value   any
	Field   string
	Layout  worker.Layout
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("node: %s %v is for layouts with a %s field, and %s has none", e.Setting, e.Value, e.Field, e.Layout)
}

// RangeError: a time does not go with the other settings.
type RangeError struct {
	Setting Setting // the one to change
	Problem string
	// Least and Most are what it may be; 0 where there is no such bound.
	Least, Most time.Duration
}

func (e *RangeError) Error() string { return "node: " + e.Problem }

// OtherClusterError: the state directory belongs to another cluster.
type OtherClusterError struct{ Ours, Found string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("node: the state directory belongs to cluster %s, and this is %s", e.Ours, e.Found)
}

// OtherZooKeeperError: the state directory was last used with another ZooKeeper, and
// this one does not have the record of its worker. If both go on, the cluster is there
// twice.
type OtherZooKeeperError struct{ State, Given string }

func (e *OtherZooKeeperError) Error() string {
	return fmt.Sprintf("node: the state directory was last used with ZooKeeper %s, and %s does not have the record of its worker", e.State, e.Given)
}
