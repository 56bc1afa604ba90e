package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
)

// diskState is the condition of the state directory.
type diskState struct {
	// err is the error of the last write of the local record, nil if it succeeded.
	err error
	// lost is Config.DirError after the last write of the local record. The reserved bound still rises: ZooKeeper shows
	// the next process, which may begin without the directory, what this worker was used for.
	lost error
	// savingSince is the time at which the present write of the local record began, monotonic ns. 0: none is under way.
	savingSince int64
	// stallSaid: the log has a line that this write stalls.
	stallSaid bool
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
	gen, err := k.writeRecord(rec)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil || k.tenure != nil { // else the error ends the start
		k.noteDisk(err)
	}
	if err != nil {
		return 0, &diskError{err}
	}
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
		ClusterName: n.cfg.Cluster, ZooKeeper: n.reports.address, Cluster: keptPart(v.Cluster, c), Claim: c,
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

// writeRecord writes the local record and returns its generation. It notes since when the write is under way: writers
// wait for each other, so a stall of any of them keeps the reserved bound from moving. saveMu is held, mu is not.
func (n *Node) writeRecord(rec LocalRecord) (generation uint64, err error) {
	local, err := rec.Encode()
	if err != nil {
		return 0, err
	}
	began := n.monotonic()
	n.mu.Lock()
	n.disk.savingSince = began
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
	lost := n.cfg.DirError()
	n.meter.disk.add(took, cmp.Or(err, lost))
	if c := rec.Claim; err == nil {
		n.cfg.Trace.Step("saved", "node", c.Node, "worker", c.Worker, "term", c.Term, "nonce", c.Nonce,
			"pending", c.PendingNonce, "floor", c.Floor, "reserved", c.ReservedUntil, "own_lease", c.LeaseUntil,
			"ever", c.EverConfirmed, "stopped", rec.Stopped)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.savingSince = 0
	n.noteLost(lost)
	if n.disk.stallSaid {
		n.disk.stallSaid = false
		n.say(n.log.Info, "the stalled write to the state directory ended",
			"took_ms", time.Duration(took).Milliseconds())
	}
	return generation, err
}

// stallAfter: if a bound runs out, and a write has been under way for longer, the disk is to blame. A shorter write
// shows nothing: the process may have stood still, and have begun the write only now.
const stallAfter = time.Second

// StallText is in DiskSnapshot.Error while a write stalls. It names stallAfter.
const StallText = "under way for more than 1s"

// stalledLocked reports whether a write to the state directory has been under way for more than stallAfter. mu is held.
func (n *Node) stalledLocked() bool {
	return n.disk.savingSince != 0 && time.Duration(n.monotonic()-n.disk.savingSince) > stallAfter
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
	defer n.mu.Unlock()
	if n.stalledLocked() && !n.disk.stallSaid {
		n.disk.stallSaid = true
		n.say(n.log.Error, "a write to the state directory stalls, serving until the reserved bound",
			"cause", TroubleDisk, "reserved_left_ms", n.reservedUntil-n.now())
	}
}

// diskError is the error of a claim that the state directory did not take.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

// noteDisk records the result of a write of the local record, and logs a change. mu is held.
func (n *Node) noteDisk(err error) {
	switch {
	case err != nil && n.disk.err == nil && n.serving.Load() == nil:
		n.say(n.log.Error, "could not write the state directory", "cause", TroubleDisk, "error", err)
	case err != nil && n.disk.err == nil:
		n.say(n.log.Error, "could not write the state directory, serving until the reserved bound",
			"cause", TroubleDisk, "error", err, "reserved_left_ms", n.reservedUntil-n.now())
	case err == nil && n.disk.err != nil:
		n.say(n.log.Info, "the state directory can be written again")
	}
	n.disk.err = err
}

// noteLost records Config.DirError, and logs a change. mu is held.
func (n *Node) noteLost(err error) {
	switch {
	case err != nil && n.disk.lost == nil:
		n.say(n.log.Error, "the next start may not find what this node writes to its state directory",
			"cause", TroubleDisk, "error", err)
	case err == nil && n.disk.lost != nil:
		n.say(n.log.Info, "the next start finds what this node writes to its state directory again")
	}
	n.disk.lost = err
}
