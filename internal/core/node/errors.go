package node

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/worker"
)

// settingError is an error about a setting.
type settingError interface {
	error
	// named returns the text with the names that a user gives settings by, and what to do.
	named(name func(Setting) string) string
}

// Named returns err. If it is or wraps an error about a setting, its text has the names that the user gives settings
// by, and what to do: name returns them.
func Named(err error, name func(Setting) string) error {
	e, ok := errors.AsType[settingError](err)
	if !ok {
		return err
	}
	return &namedError{strings.Replace(err.Error(), e.Error(), e.named(name), 1), err}
}

type namedError struct {
	text string
	err  error
}

func (e *namedError) Error() string { return e.text }
func (e *namedError) Unwrap() error { return e.err }

// ValueError says what is wrong with the value of a setting.
type ValueError struct {
	Setting Setting
	Err     error
}

func (e *ValueError) Error() string { return e.named(unnamed) }
func (e *ValueError) Unwrap() error { return e.Err }

func (e *ValueError) named(name func(Setting) string) string {
	return fmt.Sprintf("%s: %v", name(e.Setting), e.Err)
}

// unnamed returns a setting as this package names it.
func unnamed(s Setting) string { return string(s) }

// DiffersError says that the cluster has another value of a setting (Has) than this node asks for (Asked).
type DiffersError struct {
	Setting    Setting
	Asked, Has any
}

func (e *DiffersError) problem(name string) string {
	return fmt.Sprintf("%s %v differs from the cluster's %v", name, e.Asked, e.Has)
}

func (e *DiffersError) Error() string { return e.problem(string(e.Setting)) }

func (e *DiffersError) named(name func(Setting) string) string {
	return fmt.Sprintf("%s. A cluster keeps the settings that it was created with. Leave %s out, or give another %s",
		e.problem(name(e.Setting)), name(e.Setting), name(SettingCluster))
}

// FieldError says that the layout does not have the field that a setting needs. Value is the value of the setting.
type FieldError struct {
	Setting Setting
	Value   any
	Field   string
	Layout  worker.Layout
}

func (e *FieldError) problem(name string) string {
	return fmt.Sprintf("%s %v needs a layout with a %s field, but %s has none", name, e.Value, e.Field, e.Layout)
}

func (e *FieldError) Error() string { return e.problem(string(e.Setting)) }

func (e *FieldError) named(name func(Setting) string) string {
	advice := "Leave it out"
	if e.Setting == SettingOnRollback {
		advice = fmt.Sprintf("Give a layout that has one, such as %s leaf,time=40,rollback=1", name(SettingLayout))
	}
	return e.problem(name(e.Setting)) + ". " + advice
}

// RangeError says that a duration is out of range, or does not fit the other settings.
type RangeError struct {
	Setting Setting // the one to change
	Problem string
	// Least and Most bound the setting. 0 means that there is no such bound.
	Least, Most time.Duration
}

func (e *RangeError) Error() string { return e.Problem }

func (e *RangeError) named(name func(Setting) string) string {
	verb, of := "Give", name(e.Setting)
	switch e.Setting {
	case SettingLease, SettingConfirmTime, SettingBorrow: // a cluster keeps them
		verb = "Create the cluster with"
	}
	switch {
	case e.Least > 0 && e.Most > 0:
		return fmt.Sprintf("%s. %s %s %s to %s", e.Problem, verb, of, e.Least, e.Most)
	case e.Most > 0:
		return fmt.Sprintf("%s. %s %s %s or less", e.Problem, verb, of, e.Most)
	case e.Least > 0:
		return fmt.Sprintf("%s. %s %s %s or more", e.Problem, verb, of, e.Least)
	}
	return fmt.Sprintf("%s. Correct %s", e.Problem, of)
}

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
