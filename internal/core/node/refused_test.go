package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// refusing returns a fault for each write that touches a path with this prefix.
func refusing(prefix string, fault memzk.Fault) func(memzk.Call) memzk.Fault {
	return func(c memzk.Call) memzk.Fault {
		if c.Write() && strings.HasPrefix(c.Path, prefix) {
			return fault
		}
		return memzk.NoFault
	}
}

// A quota is reached, so no heartbeat is accepted. The lease that runs is worth as much as if ZooKeeper were down.
func TestQuotaDoesNotEndARestart(t *testing.T) {
	r := newRig(t)
	r.confirmedAndStopped()
	n := r.start(func(c *Config) { c.Store.(*memzk.Session).SetFault(refusing("/", memzk.FailQuota)) }).untilReady()
	n.until("the quota to be named", func() bool {
		troubles := n.Snapshot().Degraded
		return slices.Contains(troubles, TroubleQuota) && ZooKeeperTrouble(troubles) == TroubleQuota
	})
	n.session.SetFault(nil)
	n.until("healthy", func() bool { return len(n.Snapshot().Degraded) == 0 })
}

func TestQuotaEndsTheStartOfANewNode(t *testing.T) {
	n := newRig(t).start(func(c *Config) {
		c.Store.(*memzk.Session).SetFault(refusing("/tickets", memzk.FailQuota))
	})
	if err := n.ended(); !errors.Is(err, store.ErrQuota) {
		t.Error(err)
	}
}

// Without live locks nobody sees who is connected. So a new node does not start, and one that holds a worker goes on.
func TestLocalSessionsKeepNewNodesFromStarting(t *testing.T) {
	local := func(c *Config) { c.Store.(*memzk.Session).SetFault(refusing("/live", memzk.FailLocal)) }
	r := newRig(t)
	n := r.start(local, func(c *Config) {
		confirm := time.Minute
		c.Settings.ConfirmTime = &confirm
	})
	if err := n.ended(); !errors.Is(err, store.ErrLocalSession) {
		t.Error(err)
	}
	r = newRig(t)
	r.confirmedAndStopped()
	n = r.start(local).untilReady()
	n.until("local sessions to be named", func() bool {
		return slices.Contains(n.Snapshot().Degraded, TroubleLocalSession)
	})
	if left := n.Snapshot().LeaseLeftMs; left == nil || *left <= 0 {
		t.Errorf("heartbeats do not renew the lease: %v", left)
	}
}
