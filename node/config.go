package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

// Cache is the state directory, as localcache has it.
type Cache interface {
	Load() localcache.Loaded
	Save(localcache.Record) (generation uint64, err error)
	Invalidate() error
	Remove() error
}

// Config is what a Node is made of. Cluster, Store and Cache are required.
type Config struct {
	// Cluster is the cluster's name, for messages and the state directory.
	Cluster string
	// ZooKeeper names the ZooKeeper that Store is in, and ZooKeeperReplaced says that
	// it has taken the place of the one that the state directory was used with: else
	// nothing is put back there. "" for a store in memory.
	ZooKeeper         string
	ZooKeeperReplaced bool
	// Bootstrap allows the node to make the cluster record if there is none.
	Bootstrap bool
	Settings  Settings
	Labels    coordinator.Labels
	Store     zkstore.Store
	// InMemory says that Store is of this process alone and loses nothing while the
	// process lives: only then may the settling time be 0.
	InMemory bool
	// Reconnected, if given, is a hint that ZooKeeper has just been reached
	// again: the node reports at once.
	Reconnected <-chan struct{}
	Cache       Cache
	// Clock is the machine's clocks; nil means the system's.
	Clock timeguard.Clock
	// Issuing is the clock that IDs are made by, the same for all nodes of a
	// process; nil means one of this node's own, of Clock.
	Issuing *timeguard.Issuing
	// Heartbeat is how often the node reports; 0 means 3 s.
	Heartbeat time.Duration
	// CallTimeout bounds one exchange with ZooKeeper; 0 means 5 s.
	CallTimeout time.Duration
	// StartTimeout is how long a node that needs ZooKeeper to start waits for
	// it; 0 means for ever.
	StartTimeout time.Duration
	// Reserve is how far ahead the bound on the local disk is kept, below 10 s;
	// 0 means 3 s.
	Reserve time.Duration
	// ReleaseOnExit gives the slot back at a clean stop, for nodes whose state
	// directory does not outlive them.
	ReleaseOnExit bool
	// SequenceStart is where the sequence begins in a tick.
	SequenceStart worker.SequenceStart
	// SegmentStart is the segment that a tick begins in.
	SegmentStart worker.SegmentStart
	// Rand returns a number in [0, n), for a random SequenceStart or SegmentStart; nil
	// means math/rand/v2.
	Rand func(n uint32) uint32
	// Identity makes a node's identity; nil means a random UUID.
	Identity func() string
	// Logger may be nil.
	Logger hclog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Store == nil || c.Cache == nil || c.Cluster == "" {
		return c, errors.New("node: a cluster's name, a store and a state directory are required")
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&c.Heartbeat, limits.DefaultHeartbeat},
		{&c.CallTimeout, limits.Round},
		{&c.Reserve, limits.DefaultReserve},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if c.Heartbeat < limits.MinHeartbeat {
		return c, fmt.Errorf("node: a heartbeat every %s: at least %s", c.Heartbeat, limits.MinHeartbeat)
	}
	if c.Reserve < 100*time.Millisecond || c.Reserve >= limits.MaxReserve {
		return c, fmt.Errorf("node: a reserve of %s: it takes 100ms to just below %s, which is how long a restart after a crash may have to wait", c.Reserve, limits.MaxReserve)
	}
	if c.Clock == nil {
		c.Clock = timeguard.System()
	}
	if c.Issuing == nil {
		c.Issuing = timeguard.NewIssuing(c.Clock)
	}
	if c.Identity == nil {
		c.Identity = uuid.NewString
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

// extendEvery is how often the reserved bound is extended: three times within
// its window.
func (c Config) extendEvery() time.Duration { return c.Reserve / 3 }
