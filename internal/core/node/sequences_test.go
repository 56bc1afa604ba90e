package node

import (
	"sync/atomic"
	"testing"
	"time"
)

// The heartbeat that confirms a restart wakes named sequences before it has asked the peers. They look again soon: a
// sequence that cannot take positions refuses requests for as long as it is told to wait.
func TestSequencesWaitBrieflyUntilPeersAreAsked(t *testing.T) {
	r := newRig(t)
	r.confirmedAndStopped()
	var node atomic.Pointer[Node]
	var first atomic.Int64
	n := r.start(func(cfg *Config) {
		cfg.Heartbeat = 3 * time.Second
		cfg.WakeSequences = func() {
			if n := node.Load(); n != nil {
				first.CompareAndSwap(0, int64((seqTenure{n}).Slot(n.cfg.Store.SessionID()).Wait))
			}
		}
		cfg.Store.(interface{ Partition() }).Partition()
	})
	node.Store(n.Node)
	n.session.Heal()
	n.until("confirmed", n.isConfirmed)
	n.until("a wake", func() bool { return first.Load() != 0 })
	if wait := time.Duration(first.Load()); wait > 100*time.Millisecond {
		t.Errorf("sequences were told to wait for %s", wait)
	}
}
