package node

import (
	"context"
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

// Encode returns the record in the form that localcache stores. ReservedUntil, LeaseUntil, Heard and ServedMs change at
// nearly every save. They stand beside the payload, as a changed payload costs a second sync.
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
		Began: c.Chain.Began, Sent: c.Chain.Sent, Version: c.Chain.Version, Ends: c.Ends, Stamp: c.Last.Stamp,
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
	r.Claim.Ends, r.Journal = h.Ends, kept.Journal
	return r, nil
}

// ledger saves claims to the local disk for the coordinator.
type ledger struct{ n *Node }

var _ coordinator.Ledger = ledger{}

// Save writes a claim to the disk and returns the generation of the record. Once the claim is durable, it is that of
// the node's view, or the next one there if a tenure holds another slot: no later record must lack a grant that is
// pending. A claim on another slot brings its own reserved bound. For the same slot the bound stays. Either is raised
// to the claim's floor if it is below.
func (l ledger) Save(claim coordinator.Claim) (uint64, error) {
	n := l.n
	n.saveMu.Lock()
	defer n.saveMu.Unlock()
	n.mu.Lock()
	rec := n.record(claim)
	n.mu.Unlock()
	gen, err := n.save(rec)
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.generation = gen
	v := *n.view.Load()
	if n.tenure != nil && claim.Owner != n.tenure.Owner {
		v.Next = &rec.Claim
	} else {
		v.Claim, n.reservedUntil = claim, rec.Claim.ReservedUntil
	}
	n.view.Store(&v)
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
		ClusterName: n.cfg.Cluster, ZooKeeper: n.store.address, Cluster: kept(n.cluster, c), Claim: c,
		ServedMs: n.served.Milliseconds(), Journal: max(n.journal, n.cfg.Journal()), Boot: n.cfg.BootID,
		Rotations: slices.Clone(n.rotations),
	}
}

// kept returns the part of the cluster record that a node keeps: the settings, and the incarnation in which the claim
// was last acknowledged. It leaves out InUse and the freeze, which only ZooKeeper can know.
func kept(cl coordinator.Cluster, c coordinator.Claim) coordinator.Cluster {
	cl.Incarnation, cl.InUse = c.Incarnation, false
	cl.FrozenUntil, cl.FrozenBy = 0, ""
	return cl
}

// extendLoop keeps the reserved bound on the local disk ahead of the clock until the context ends. It also starts a
// tenure that waits for its floor, since keep may be waiting for ZooKeeper at that moment.
func (n *Node) extendLoop(ctx context.Context) {
	timer := time.NewTimer(n.cfg.extendEvery())
	defer timer.Stop()
	last := n.mono()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wakeDisk:
		case <-timer.C:
		}
		now := n.mono()
		n.turns.extend.Store(now)
		n.addServed(time.Duration(now - last))
		stored := n.extend(0)
		n.turns.extend.Store(n.mono()) // a write may take long
		last = now
		n.startServing()
		timer.Reset(n.untilExtend(stored))
	}
}

// retryDisk is the pause before a failed write to the disk is retried. It is short because the
// node may be refusing until the write succeeds.
const retryDisk = 100 * time.Millisecond

// untilExtend returns the time to the next extension. stored reports whether the last one was written to the disk.
func (n *Node) untilExtend(stored bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	every := n.cfg.extendEvery()
	switch {
	case n.disk.err != nil:
		return min(every, retryDisk)
	case stored && n.shortOfBound() > every:
		return 0 // storing it took long, or the clock leapt: extend again
	case n.phase == Waiting && n.tenure != nil:
		return min(every, max(ms(n.tenure.floor-n.now()), time.Millisecond))
	}
	return n.cfg.Pulse.Until(every)
}

// addServed adds to the time that the node has served, if it serves.
func (n *Node) addServed(elapsed time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serving.Load() != nil {
		n.served += elapsed
	}
}

// extend raises the reserved bound (ReservedUntil), makes it durable, and only then lets the
// generator use it (C5). The clock is about to go forward by ahead. extend reports whether a bound was stored.
func (n *Node) extend(ahead time.Duration) (stored bool) {
	n.saveMu.Lock()
	defer n.saveMu.Unlock()
	rec, due := n.extension(ahead)
	if !due {
		return false
	}
	gen, err := n.save(rec)
	n.mu.Lock()
	defer n.unlock()
	n.noteDisk(err)
	if err != nil {
		return false
	}
	n.generation, n.reservedUntil = gen, rec.Claim.ReservedUntil
	n.applyBounds()
	if t := n.tenure; t != nil { // requests do this as well, but an idle node must also take a fresh slot
		n.behindOnce(t.gen.Behind())
	}
	return true
}

// extension returns the local record with the next reserved bound. due is false if the bound must stay.
func (n *Node) extension(ahead time.Duration) (rec LocalRecord, due bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, v := n.tenure, n.view.Load()
	if t == nil || !v.Claim.EverConfirmed || n.skew.wrong || n.phase == Stopping {
		return LocalRecord{}, false
	}
	//mutant:c9-record-over-a-pending-grant by TestOldTenureIsReportedDuringWorkerChange -> if false {
	if v.Next != nil { // the record must keep the grant that is pending (C9)
		return LocalRecord{}, false
	}
	rec = n.record(v.Claim)
	now := n.now() + ahead.Milliseconds()
	rec.Claim.ReservedUntil = timeguard.NextReserved(n.reservedUntil, now, v.Claim.LeaseUntil, n.window())
	//mutant:c5-not-durable by sim -> n.reservedUntil = rec.Claim.ReservedUntil; n.applyBounds(); return rec, true
	return rec, true
}

// noteDisk records the result of an extension, and logs a change. mu is held.
func (n *Node) noteDisk(err error) {
	switch {
	case err != nil && n.disk.err == nil:
		n.say(n.log.Error, "could not write the state directory, serving until the reserved bound",
			"cause", TroubleDisk, "error", err, "reserved_left_ms", n.reservedUntil-n.now())
	case err == nil && n.disk.err != nil:
		n.say(n.log.Info, "the state directory can be written again")
	}
	n.disk.err = err
}

// save writes the local record and returns its generation. It notes since when the write is under way: writers wait for
// each other, so a stall of any of them keeps the reserved bound from moving. saveMu is held, mu is not.
func (n *Node) save(rec LocalRecord) (generation uint64, err error) {
	local, err := rec.Encode()
	if err != nil {
		return 0, err
	}
	began := n.mono()
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
	took := n.mono() - began
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

// stalled reports whether a write to the state directory has been under way for more than stallAfter. mu is held.
func (n *Node) stalled() bool {
	return n.disk.saving && time.Duration(n.mono()-n.disk.since) > stallAfter
}

func (n *Node) diskStalls() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stalled()
}

// noteStall logs that the disk stalls, once for each write.
func (n *Node) noteStall() {
	n.mu.Lock()
	defer n.unlock()
	if n.stalled() && !n.disk.stallSaid {
		n.disk.stallSaid = true
		n.say(n.log.Error, "a write to the state directory stalls, serving until the reserved bound",
			"cause", TroubleDisk, "reserved_left_ms", n.reservedUntil-n.now())
	}
}

// window returns how far ahead of the clock the reserved bound is kept: by Config.Reserve
// beyond what may be borrowed. mu is held.
func (n *Node) window() time.Duration { return n.cfg.Reserve + n.borrow }

// shortOfBound returns how much higher the reserved bound could be now, by the clock and the
// lease bound. It is negative if the clock went back. mu is held.
func (n *Node) shortOfBound() time.Duration {
	return ms(min(n.now()+n.window().Milliseconds(), n.view.Load().Claim.LeaseUntil) - n.reservedUntil)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
