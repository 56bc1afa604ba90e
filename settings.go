package flaked

import (
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/node"
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
	text := func(t string) *string {
		if t == "" {
			return nil
		}
		return &t
	}
	err = node.Texts{
		Layout: text(s.Layout), OnRollback: text(s.OnRollback),
		SequenceStart: text(s.SequenceStart), SegmentStart: text(s.SegmentStart),
	}.Read(&to)
	if wrong, ok := errors.AsType[*node.TextError](err); ok {
		err = fmt.Errorf("Config.Settings.%s: %w", fieldNames[wrong.Setting], wrong.Err)
	}
	return to, err
}

// fieldNames are the fields of Settings that are read as text.
var fieldNames = map[node.Setting]string{
	node.SettingLayout: "Layout", node.SettingOnRollback: "OnRollback",
	node.SettingSequenceStart: "SequenceStart", node.SettingSegmentStart: "SegmentStart",
}
