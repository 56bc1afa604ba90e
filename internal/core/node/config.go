package node

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/pulse"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
)

// Cache is the state directory. *localcache.StateFile implements it.
type Cache interface {
	Load() localcache.Loaded
	Save(localcache.Record) (generation uint64, err error)
	Invalidate() error
	Remove() error
}

// Config configures a Node. Cluster, Store and Cache are required.
type Config struct {
	// Cluster is the cluster's name, for messages and the state directory.
	Cluster string
	// ZooKeeper names the ZooKeeper that Store reaches: servers and chroot. It is empty for a store in memory. If the
	// state directory was last used with another ZooKeeper, the node puts nothing back in this one, and resumes only if
	// its record is there. ZooKeeperReplaced lifts that: this ZooKeeper has taken the place of the other.
	ZooKeeper         string
	ZooKeeperReplaced bool
	// Bootstrap allows the node to create the cluster record if there is none.
	Bootstrap bool
	// Settings are those that the cluster must have. The zero value accepts any cluster.
	Settings Settings
	// Labels are shown to people. They may be empty.
	Labels coordinator.Labels
	Store  store.Store
	// InMemory says that only this process uses Store, and that Store loses nothing while
	// the process runs. Only then may the confirming time be 0.
	InMemory bool
	// Reconnected, if not nil, receives a value when ZooKeeper is reached again. The node then reports at once.
	Reconnected <-chan struct{}
	Cache       Cache
	// Clock reads the machine's clocks. nil means timeguard.System.
	Clock timeguard.Clock
	// BootID is new at each boot of the machine. Empty: not known, so each start waits for the confirming
	// time before it takes values of sequences.
	BootID string
	// Heartbeat is the time between two reports to ZooKeeper, 10 ms or more. 0 means 3 s.
	Heartbeat time.Duration
	// RoundTimeout bounds one round of calls to ZooKeeper. 0 means 5 s.
	RoundTimeout time.Duration
	// StartTimeout is how long a start that needs ZooKeeper waits for a ZooKeeper that does
	// not answer. 0 means for ever.
	StartTimeout time.Duration
	// Reserve is how far ahead of the clock the reserved bound on the local disk is kept,
	// from 100 ms to below 10 s. 0 means 3 s. The time that the cluster may borrow is added.
	Reserve time.Duration
	// ReleaseOnExit releases the slot at a clean stop. It is for nodes whose state directory does not outlive them.
	ReleaseOnExit bool
	// Rand returns a number in [0, n), for a random first sequence value or segment. nil means math/rand/v2.
	Rand func(n uint32) uint32
	// Identity returns a new identity for a node. nil means a random UUID.
	Identity func() string
	// Followed returns coordinator.Slot.Followed. nil: the node serves no named sequences.
	Followed func() coordinator.Followed
	// HasSequences reports whether the cluster has named sequences, as far as the node knows. nil: it has none.
	HasSequences func() bool
	// Journal returns the count of the journal of named sequences. nil: there is none.
	Journal func() uint64
	// DirError returns why the next process would not find the state directory, or in it what named sequences know and
	// hold, nil if it would. The node asks after each write of its own record, and serves on. nil: it would.
	DirError func() error
	// WakeSequences, if not nil, makes named sequences look again: the node has noticed that ZooKeeper has lost
	// data, or has confirmed its worker. It must not block.
	WakeSequences func()
	// Pulse puts heartbeats and extensions on the moments of the process's other periodic work. nil
	// means that they follow each other at their own pace.
	Pulse *pulse.Grid
	// Trace may be nil, which traces nothing.
	Trace coordinator.Trace
	// Logger may be nil, which logs nothing.
	Logger hclog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Store == nil || c.Cache == nil || c.Cluster == "" {
		return c, errors.New("a cluster's name, a store and a state directory are required")
	}
	c.Heartbeat = cmp.Or(c.Heartbeat, limits.DefaultHeartbeat)
	c.RoundTimeout = cmp.Or(c.RoundTimeout, limits.Round)
	c.Reserve = cmp.Or(c.Reserve, limits.DefaultReserve)
	if err := cmp.Or(c.checkTimes(), c.checkLabels()); err != nil {
		return c, err
	}
	if c.Clock == nil {
		c.Clock = timeguard.System()
	}
	if c.Identity == nil {
		c.Identity = uuid.NewString
	}
	if c.HasSequences == nil {
		c.HasSequences = func() bool { return false }
	}
	if c.Journal == nil {
		c.Journal = func() uint64 { return 0 }
	}
	if c.DirError == nil {
		c.DirError = func() error { return nil }
	}
	if c.WakeSequences == nil {
		c.WakeSequences = func() {}
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

// checkTimes returns an error if a time is out of range for every cluster. New calls
// it after it has replaced zero by the defaults.
func (c Config) checkTimes() error {
	switch {
	case c.Heartbeat < limits.MinHeartbeat:
		return &RangeError{Setting: SettingHeartbeat, Least: limits.MinHeartbeat,
			Problem: fmt.Sprintf("the heartbeat interval %s is too short", c.Heartbeat)}
	case c.Reserve < 100*time.Millisecond || c.Reserve >= limits.MaxReserve:
		return &ValueError{SettingReserve, fmt.Errorf("%s is out of range. Use 100ms to just below %s: a restart "+
			"after a crash may wait that long", c.Reserve, limits.MaxReserve)}
	case c.StartTimeout < 0:
		return &ValueError{SettingStartTimeout, fmt.Errorf("%s must not be negative. 0 means no limit",
			c.StartTimeout)}
	}
	return nil
}

// maxLabel is the most bytes of a label. The record of each worker has all of them, and each heartbeat
// writes that record.
const maxLabel = 4096

// checkLabels returns an error for a name, an address or an admin address that cannot stand in the slot's record.
func (c Config) checkLabels() error {
	if strings.ContainsAny(c.Labels.Name, " \t\r\n") {
		return &ValueError{SettingName, fmt.Errorf("%q must not contain blanks", c.Labels.Name)}
	}
	for _, label := range []struct {
		of   Setting
		text string
	}{{SettingName, c.Labels.Name}, {SettingAddress, c.Labels.Address}, {SettingAdmin, c.Labels.Admin}} {
		if len(label.text) > maxLabel {
			return &ValueError{label.of, fmt.Errorf("%d bytes are too many. Use %d at most", len(label.text), maxLabel)}
		}
	}
	return nil
}

// extendEvery returns the time between two extensions of the reserved bound: a third of Reserve.
func (c Config) extendEvery() time.Duration { return c.Reserve / 3 }
