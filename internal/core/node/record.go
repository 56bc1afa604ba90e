package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
)

// LocalRecord is the record that a node keeps in its state directory.
type LocalRecord struct {
	// ClusterName is the cluster's name, as in Config.Cluster. The cluster's identity is Cluster.UUID.
	ClusterName string `json:"cluster_name"`
	// ZooKeeper names the ZooKeeper with the cluster's records: servers and chroot. It is empty for a store in memory.
	ZooKeeper string              `json:"zookeeper,omitempty"`
	Cluster   coordinator.Cluster `json:"cluster"`
	Claim     coordinator.Claim   `json:"claim"`
	// Stopped: the last run ended cleanly, and Claim.ReservedUntil is the exact end of what it issued.
	Stopped bool `json:"stopped,omitempty"`
	// ServedMs is how long this node has served, over all its restarts, in milliseconds. It
	// sets the length of its leases.
	ServedMs int64 `json:"-"`
	// Boot is the kernel's boot ID at the time of Claim.Chain. In another boot the boot clock counts anew.
	Boot string `json:"boot,omitempty"`
	// Journal is the count of the journal of named sequences.
	Journal uint64 `json:"-"`
	// Rotations are the times when fresh slots were taken after the clock went back, Unix ms.
	// There are maxRotations at most, so that the record stays small.
	Rotations []int64 `json:"rotations,omitempty"`
}

// Encode returns the record in the form that localcache stores. The fields that change at nearly every save stand
// beside the payload, because a changed payload costs a second sync: ReservedUntil, LeaseUntil, ServedMs, Heard and
// Journal.
func (r LocalRecord) Encode() (localcache.Record, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return localcache.Record{}, fmt.Errorf("encode the local record: %w", err)
	}
	return localcache.Record{ReservedUntil: r.Claim.ReservedUntil, LeaseUntil: r.Claim.LeaseUntil, ServedMs: r.ServedMs,
		Heard: heardOf(r.Claim), Journal: r.Journal, Payload: payload}, nil
}

func heardOf(c coordinator.Claim) localcache.Heard {
	acked := c.Last.Acked
	return localcache.Heard{
		Began: c.Chain.Began, Sent: c.Chain.Sent, Version: c.Chain.Version, Ends: c.BootEnd, Stamp: c.Last.Stamp,
		LastSent: c.Last.Sent.Most, Boot: acked.Boot, Wall: acked.Wall, Least: acked.Least, Most: acked.Most,
	}
}

// DecodeRecord reverses Encode. It returns a zero LocalRecord for a zero record, and
// an error if the payload is not that of a node.
func DecodeRecord(kept localcache.Record) (r LocalRecord, err error) {
	if kept.Payload != nil {
		err = json.Unmarshal(kept.Payload, &r)
	}
	if err != nil {
		return LocalRecord{}, fmt.Errorf("the state file does not contain a node's record: %w. Use the release that "+
			"wrote it, or an empty state directory", err)
	}
	r.Claim.ReservedUntil, r.Claim.LeaseUntil, r.Claim.Generation, r.ServedMs = kept.ReservedUntil, kept.LeaseUntil,
		kept.Generation, kept.ServedMs
	h := kept.Heard
	r.Claim.Chain = coordinator.Chain{Began: h.Began, Sent: h.Sent, Version: h.Version}
	r.Claim.Last = timeguard.Stamped{
		Sent: timeguard.Moment{Most: h.LastSent}, Stamp: h.Stamp,
		Acked: timeguard.Moment{Boot: h.Boot, Wall: h.Wall, Least: h.Least, Most: h.Most},
	}
	r.Claim.BootEnd, r.Journal = h.Ends, kept.Journal
	return r, nil
}

// Save is part of coordinator.Ledger: it writes a claim to the disk and returns the generation of the record. The claim
// then becomes View.Claim, or View.Next if the node holds a tenure of another slot. So each later record has the grant
// that is pending. For the slot of View.Claim or View.Next the reserved bound stays, and for any other slot it is the
// claim's own. A bound below the claim's floor is raised to the floor.
func (k *keeper) Save(claim coordinator.Claim) (uint64, error) {
	k.saveMu.Lock()
	defer k.saveMu.Unlock()
	k.mu.Lock()
	rec := k.record(claim)
	k.mu.Unlock()
	gen, err := k.save(rec)
	if err != nil {
		return 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generation = gen
	v := *k.view.Load()
	if k.tenure != nil && claim.Owner != k.tenure.Owner {
		v.Next = &rec.Claim
	} else {
		v.Claim, k.reservedUntil = claim, rec.Claim.ReservedUntil
	}
	k.view.Store(&v)
	return gen, nil
}

// record returns the local record of a claim, without Stopped. mu is held.
func (n *Node) record(c coordinator.Claim) LocalRecord {
	v, reserved := n.view.Load(), c.ReservedUntil
	switch {
	case c.Owner == v.Claim.Owner:
		reserved = n.reservedUntil
	case v.Next != nil && c.Owner == v.Next.Owner:
		reserved = v.Next.ReservedUntil
	}
	reserved = max(reserved, c.Floor) // (C6) a restart begins at ReservedUntil: never below a claim's floor
	c.ReservedUntil = reserved
	return LocalRecord{
		ClusterName: n.cfg.Cluster, ZooKeeper: n.reports.address, Cluster: keptPart(n.cluster, c), Claim: c,
		ServedMs: n.served.Milliseconds(), Journal: max(n.journal, n.cfg.Journal()), Boot: n.cfg.BootID,
		Rotations: slices.Clone(n.rotations),
	}
}

// keptPart returns the part of the cluster record that a node keeps: all but InUse and the freeze, which only ZooKeeper
// can know. The incarnation is the one in which the claim was last acknowledged.
func keptPart(cl coordinator.Cluster, c coordinator.Claim) coordinator.Cluster {
	cl.Incarnation, cl.InUse = c.Incarnation, false
	cl.FrozenUntil, cl.FrozenBy = 0, ""
	return cl
}

// save writes the local record and returns its generation. It notes since when the write is under way: writers wait for
// each other, so a stall of any of them keeps the reserved bound from moving. saveMu is held, mu is not.
func (n *Node) save(rec LocalRecord) (generation uint64, err error) {
	local, err := rec.Encode()
	if err != nil {
		return 0, err
	}
	began := n.monotonic()
	n.mu.Lock()
	n.disk.saving, n.disk.since = true, began
	n.mu.Unlock()
	n.noting.Add(1)
	stall := time.AfterFunc(stallAfter+time.Millisecond, func() { // both loops may be waiting for the disk
		defer n.noting.Done()
		n.noteStall()
	})
	defer func() {
		if stall.Stop() {
			n.noting.Done()
		}
	}()
	generation, err = n.cfg.Cache.Save(local)
	took := n.monotonic() - began
	n.meter.disk.add(took, err)
	if c := rec.Claim; err == nil {
		n.cfg.Trace.Step("saved", "node", c.Node, "worker", c.Worker, "term", c.Term, "nonce", c.Nonce,
			"pending", c.PendingNonce, "floor", c.Floor, "reserved", c.ReservedUntil, "own_lease", c.LeaseUntil,
			"ever", c.EverConfirmed, "stopped", rec.Stopped)
	}
	n.mu.Lock()
	defer n.unlock()
	n.disk.saving = false
	if n.disk.stallSaid {
		n.disk.stallSaid = false
		n.say(n.log.Info, "the stalled write to the state directory ended",
			"took_ms", time.Duration(took).Milliseconds())
	}
	return generation, err
}

// stallAfter is how long a write must be under way before the disk is blamed for a bound that ran out. Until then the
// process may be to blame: it may have been stopped, and may have only just begun the write.
const stallAfter = time.Second

// stalledLocked reports whether a write to the state directory has been under way for more than stallAfter. mu is held.
func (n *Node) stalledLocked() bool {
	return n.disk.saving && time.Duration(n.monotonic()-n.disk.since) > stallAfter
}

// stalled is stalledLocked for a caller that does not hold mu.
func (n *Node) stalled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stalledLocked()
}

// noteStall logs that the disk stalls, once for each write.
func (n *Node) noteStall() {
	n.mu.Lock()
	defer n.unlock()
	if n.stalledLocked() && !n.disk.stallSaid {
		n.disk.stallSaid = true
		n.say(n.log.Error, "a write to the state directory stalls, serving until the reserved bound",
			"cause", TroubleDisk, "reserved_left_ms", n.reservedUntil-n.now())
	}
}
