package flaked

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// Settings are settings of a cluster, in the words of `flaked cluster init`. An empty or nil field accepts what the
// cluster has. If Config.Bootstrap creates the cluster, the field then has its default.
type Settings struct {
	// Layout is the layout of IDs, as worker.ParseLayout reads it: "twitter", "leaf,epoch=2026-01-01". The default is
	// "leaf".
	Layout string
	// Datacenter is the number of the datacenter in IDs, if the layout has that field. The default is 0.
	Datacenter *int64
	// Lease is the longest lease, 1 s or more: for so long a node may serve without ZooKeeper. The default is 24 h.
	Lease *time.Duration
	// ConfirmTime is how long a new node waits for a holder of its worker that ZooKeeper lost, 410 ms to 1 h. The
	// default is two heartbeats and 6 s.
	ConfirmTime *time.Duration
	// OnRollback says what a node does when its clock goes back: "leaf", "refuse", "wait=TIME", "coast=TIME" or
	// "rollback-bits". The default is "rollback-bits" if the layout has such a field, otherwise "leaf".
	OnRollback string
	// Borrow is how far ahead of the clock a burst may make IDs, in whole milliseconds. The default is 0.
	Borrow *time.Duration
	// SequenceStart is where the sequence field of an ID begins in a tick: "random", "zero" or "carry-on". The default
	// is "random".
	SequenceStart string
	// SegmentStart is the segment that a tick begins in, if the layout has that field: "zero" or "random". The default
	// is "zero".
	SegmentStart string
}

// parsed returns the settings as the node reads them, or an error that names a field.
func (s Settings) parsed() (to node.Settings, err error) {
	to = node.Settings{Datacenter: s.Datacenter, Lease: s.Lease, ConfirmTime: s.ConfirmTime, Borrow: s.Borrow}
	to.Layout = parsed("Layout", s.Layout, worker.ParseLayout, &err)
	to.OnRollback = parsed("OnRollback", s.OnRollback, timeguard.ParseRollbackPolicy, &err)
	to.SequenceStart = parsed("SequenceStart", s.SequenceStart, worker.ParseSequenceStart, &err)
	to.SegmentStart = parsed("SegmentStart", s.SegmentStart, worker.ParseSegmentStart, &err)
	return to, err
}

// parsed returns the parsed text of a field, nil if it is empty. It stores an error in wrong, unless there is one.
func parsed[T any](field, text string, parse func(string) (T, error), wrong *error) *T {
	if text == "" {
		return nil
	}
	v, err := parse(text)
	if err != nil && *wrong == nil {
		*wrong = fmt.Errorf("Config.Settings.%s: %w", field, err)
	}
	return &v
}
