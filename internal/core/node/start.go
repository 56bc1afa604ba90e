package node

import (
	"fmt"
	"strconv"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// begin returns the first attempt, made from the local record in the state directory. A start that must
// not go on is refused.
func (n *Node) begin() (attempt, error) {
	loaded := n.cfg.Cache.Load()
	rec, err := DecodeRecord(loaded.Record)
	if err != nil {
		return attempt{}, err
	}
	// unfit ends the start only if the claim can be resumed. A new node goes by the cluster's record in ZooKeeper.
	var unfit error
	// Even if the record is not resumed: the node must not make a cluster anew that ZooKeeper has lost.
	if rec.ClusterName == n.cfg.Cluster {
		unfit = n.adoptCluster(rec.Cluster)
	}
	a := n.newcomer()
	//mutant:c17-any-zookeeper by sim -> a.otherZK = false
	a.otherZK = rec.ZooKeeper != "" && rec.ZooKeeper != n.cfg.ZooKeeper && !n.cfg.ZooKeeperReplaced
	n.mu.Lock()
	n.store.address = rec.ZooKeeper
	if n.cfg.ZooKeeperReplaced {
		n.store.address = n.cfg.ZooKeeper
	}
	n.mu.Unlock()
	if loaded.Status == localcache.StatusRecord && rec.ClusterName != n.cfg.Cluster {
		return a, &StateOfOtherClusterError{Ours: strconv.Quote(rec.ClusterName), Found: strconv.Quote(n.cfg.Cluster)}
	}
	if !n.resumable(loaded, rec) {
		return a, nil
	}
	if unfit == nil {
		_, unfit = n.cfg.fits(n.cluster)
	}
	if unfit != nil {
		return a, unfit
	}
	if a.otherZK {
		n.log.Warn("the state directory was last used with another ZooKeeper, resuming only if this one has the "+
			"worker's record",
			"last_zookeeper", rec.ZooKeeper, "zookeeper", n.cfg.ZooKeeper)
	}
	n.recall(loaded, rec)
	a.usable, a.cached = true, n.coord.Claim().EverConfirmed && !a.otherZK
	return a, nil
}

// resumable reports whether the state directory has a claim to resume.
//
// A record that does not match this machine and file was copied or moved. The original may
// be started as well, even without ZooKeeper, while this node holds the slot. So such a
// record is never resumed, and the node registers as a new one (C18).
func (n *Node) resumable(loaded localcache.Loaded, rec LocalRecord) bool {
	switch {
	case loaded.Status == localcache.StatusCorrupt:
		n.log.Warn("ignored the damaged state file, registering as a new node", "reason", loaded.Reason)
		return false
	case loaded.Status != localcache.StatusRecord:
		return false
	//mutant:c18-no-fingerprint by sim -> case false:
	case len(loaded.Changed) > 0:
		n.log.Warn("the state directory was copied or moved here, registering as a new node",
			"changed", loaded.Changed, "old_worker", rec.Claim.Worker)
		return false
	case loaded.Damaged:
		n.log.Warn("one copy in the state file is damaged, continuing from the other", "reason", loaded.Reason)
	}
	return true
}

// recall makes the claim of a local record the node's own.
func (n *Node) recall(loaded localcache.Loaded, rec LocalRecord) {
	claim := rec.Claim.From(n.elapsed, rec.Boot != "" && rec.Boot == n.cfg.BootID)
	if loaded.Damaged {
		n.startSlack = limits.BoundSlack // its ReservedUntil was raised by this
		claim.Generation++               // the block that is lost may have been the newer one
	}
	n.coord.Recall(claim)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.follow()
	n.reservedUntil, n.generation = claim.ReservedUntil, claim.Generation
	n.served, n.rotations = ms(rec.ServedMs), rec.Rotations
	n.resumed, n.journal = true, rec.Journal
}

// checkStart returns a *ClockError if the clock is behind floor (Unix ms) by more than a start
// waits for. A predecessor may have issued everything below floor.
func (n *Node) checkStart(floor int64) error {
	patience := limits.MaxStartWait + n.startSlack
	wait := timeguard.StartWait(n.now(), floor)
	if wait > patience {
		return &ClockError{fmt.Sprintf("the clock is %s behind what this worker may have issued. "+
			"A start waits %s at most. Set the clock right, or remove the state directory to start with a new worker",
			wait, patience)}
	}
	return nil
}

// checkEra returns a *ClockError if the layout cannot hold the time of the clock. It comes before all comparisons with
// records: a machine without a battery for its clock starts in 1970.
func (n *Node) checkEra() error {
	if now := n.now(); n.layout != (worker.Layout{}) && !inEra(n.layout, now) {
		return &ClockError{fmt.Sprintf("the clock says %s, and IDs of layout %s have times %s. Set the clock right "+
			"(NTP) and start again. If it is right, use a cluster with another layout",
			time.UnixMilli(now).UTC().Format(time.RFC3339), n.layout, era(n.layout))}
	}
	return nil
}

// inEra reports whether the layout can hold a time, Unix ms.
func inEra(l worker.Layout, ms int64) bool { return ms >= l.Epoch && ms < l.Expires().UnixMilli() }

// era returns the times that IDs of a layout can have, in words.
func era(l worker.Layout) string {
	return fmt.Sprintf("from %s to %s", time.UnixMilli(l.Epoch).UTC().Format(time.DateOnly),
		l.Expires().UTC().Format(time.DateOnly))
}

// startFromCache starts from the local record alone: ZooKeeper does not answer, or it has lost
// the record of this node or its cluster (lost).
func (n *Node) startFromCache(lost bool) error {
	s := n.peek()
	//mutant:c16-alone-beyond-the-lease -> c := n.coord.Claim(); c.LeaseUntil = n.now() + 60_000; n.coord.Recall(c); n.coord.GoAlone(s.reservedUntil, s.generation)
	n.coord.GoAlone(s.reservedUntil, s.generation) // (C6)
	claim := n.coord.Claim()
	n.log.Warn("starting from the state directory alone, the clock is unverified", "cause", TroubleFromCache,
		"worker", claim.Worker, "term", claim.Term,
		"lease_left_s", n.leaseLeftS(claim), "record_missing", lost)
	n.cfg.Trace.Step("alone", "node", claim.Node, "worker", claim.Worker, "term", claim.Term, "nonce", claim.Nonce,
		"inc", claim.Incarnation, "floor", claim.Floor, "own_lease", claim.LeaseUntil, "ever", claim.EverConfirmed,
		"now", n.now())
	return n.beginTenure()
}
