package coordinator

import (
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// Finding is the meaning, for a holder, of the record that it finds.
type Finding int

const (
	// FoundOurs: the record is ours. Go on.
	FoundOurs Finding = iota
	// FoundFenced: another node or an operator has taken the slot, or another cluster has taken the place of ours. Stop
	// issuing.
	FoundFenced
	// FoundLost: ZooKeeper lost our record. Write it again while the lease runs.
	FoundLost
	// FoundCloned: the record is ours, and another process has written it. Stop issuing, and write nothing.
	FoundCloned
)

// ClusterFinding returns the meaning of the cluster's record for a holder of the cluster uuid that knows an incarnation
// of it. A newer cluster in its place gives way to that holder while no node has confirmed in it.
func ClusterFinding(found *Cluster, uuid string, incarnation int64) Finding {
	switch {
	case found == nil:
		return FoundLost
	case found.UUID == uuid && found.Incarnation < incarnation:
		return FoundLost // an older copy
	case found.UUID == uuid:
		return FoundOurs
	case found.InUse:
		return FoundFenced
	}
	return FoundLost
}

// slotFinding says what the record found in a slot means for its holder (C19). found is nil if there is none.
//
// A record with our nonce is ours. A release of our record by an operator fences in every incarnation. Else the
// incarnations are compared. A record of an earlier incarnation is an older copy: a loss. One of a later incarnation
// fences if it is confirmed, because its holder has waited for the earlier one and has issued IDs since. If it is not
// confirmed, a new node that did not know of the holder has written it: a loss. In the same incarnation a higher term
// fences, an equal term fences if it is confirmed, and a lower term is an older copy.
func slotFinding(found *Slot, claim Claim) Finding {
	switch {
	case found == nil:
		return FoundLost
	case claim.carriedBy(*found):
		return FoundOurs
	case found.ReleasedBy != "" && found.Node == claim.Node && found.Term > claim.Term:
		return FoundFenced // an operator released it; no incarnation changes that (C30)
	case found.Incarnation > claim.Incarnation && found.Confirmed:
		return FoundFenced
	case found.Incarnation != claim.Incarnation:
		return FoundLost
	case found.Term > claim.Term:
		return FoundFenced
	// Scenario: A has term 5, and is cut off. ZooKeeper gets data back from before that. B acquires the slot, also with
	// term 5, confirms, and issues. Nobody has noticed the loss, so the incarnations are equal.
	//mutant:c19-confirmed-equal-term-overwritten by sim -> case false:
	case found.Term == claim.Term && found.Confirmed:
		return FoundFenced
	}
	return FoundLost
}

// finding combines the findings on the cluster's record and on ours. Another holder fences us even if the cluster's
// record is lost: our lease may have ended although our clock, which may be behind, says that it runs. Exception: on an
// older copy of our record, a holder that has not confirmed does not fence.
func (h holderState) finding(v recordPair, mine Cluster) (Finding, string) {
	ofCluster := ClusterFinding(v.cl, mine.UUID, max(h.Incarnation, mine.Incarnation))
	ofSlot := slotFinding(v.slot, h.Claim)
	older := h.wentBack(v.slot, v.slotStat)
	if older && ofSlot == FoundFenced && !v.slot.Confirmed {
		ofSlot = FoundLost
	}
	switch {
	case ofCluster == FoundFenced:
		return ofCluster, fmt.Sprintf("this ZooKeeper now holds cluster %s, not %s", v.cl.UUID, mine.UUID)
	case ofSlot == FoundFenced:
		return ofSlot, v.slot.holderText(h.Term)
	case ofCluster == FoundLost:
		return ofCluster, "ZooKeeper has lost the cluster record"
	case ofSlot == FoundLost && v.slot == nil:
		return ofSlot, "ZooKeeper has lost the worker's record"
	case ofSlot == FoundLost:
		return ofSlot, "ZooKeeper has an older record of the worker: " + v.slot.holderText(h.Term)
	case older || v.slot.LeaseUntil < h.LeaseUntil:
		return FoundLost, "ZooKeeper has an older copy of the worker's record"
	case h.isCloned(v):
		return FoundCloned, "another process writes this worker's record as this node, so this machine was cloned, or " +
			"set back to a snapshot"
	}
	return ofSlot, ""
}

// isCloned reports whether a record of ours was written by another process (C33): its version is above each that this
// process can have made. Only a copy of the process's memory has our nonce, so the machine was cloned.
//
// Scenario: a machine is cloned while it runs, and both go on. Each writes the record that it finds, which is its own
// by node, term and nonce. So both serve, and make the same IDs without end.
func (h holderState) isCloned(v recordPair) bool {
	//mutant:c33-clone-is-not-noticed by TestCloneOfAProcessIsFenced -> return false
	return h.boundKnown && v.slotStat.Version > h.maxVersion
}

// wentBack reports whether ZooKeeper has lost our last acknowledged write of the slot. It has if the record has a lower
// version, or the same version from another writer.
//
// Scenario: our write makes version 8. ZooKeeper gets data back from before it, and another node's write makes version
// 8 again.
func (h holderState) wentBack(found *Slot, stat store.Stat) bool {
	return found != nil && h.Chain != noChain &&
		(stat.Version < h.Chain.Version || stat.Version == h.Chain.Version && !h.carriedBy(*found))
}

// showsLoss reports whether a record that fences us also shows that ZooKeeper has lost our confirmed one. Another
// cluster in the place of ours cannot be frozen.
func (h holderState) showsLoss(v recordPair, mine Cluster) bool {
	return v.slot != nil && ClusterFinding(v.cl, mine.UUID, h.Incarnation) != FoundFenced &&
		(h.wentBack(v.slot, v.slotStat) || h.wasLost(*v.slot))
}

// holderText says for people who holds the slot. ours is the term of the claim.
func (s Slot) holderText(ours int64) string {
	return fmt.Sprintf("node %s (%s) holds the worker at term %d, ours was %d", s.Node, s.Name, s.Term, ours)
}

// wasLost reports whether another node's record of our slot proves that ZooKeeper had lost our confirmed one. A
// rightful next holder has a later first term and our tenure in its history, and began when our lease had expired by
// its own clock, unless the slot was given up. Nothing that happens to a clock later can make a rightful holder look
// like a loss.
//
// The history has dropped our entry if it is full and has only later holders: their terms are above ours, and they
// began above our floor. Holders from before us began below it, since no holder begins below the one before.
func (c Claim) wasLost(found Slot) bool {
	switch {
	case !c.EverConfirmed || found.Term < 1 || found.Incarnation != c.Incarnation:
		return false
	case found.Node == c.Node: // an operator does not lower the bound of the slot that he releases
		return found.ReleasedBy != "" && found.LeaseUntil < c.LeaseUntil
	}
	if found.FromTerm > 0 && found.FromTerm <= c.Term {
		return true
	}
	past := found.History
	if len(past) == maxHistory && past[0].Term > c.Term && past[0].Granted >= c.Floor {
		return false
	}
	for _, p := range slices.Backward(past) {
		if p.Node == c.Node {
			ended := p.Ended == EndedReleased || p.Ended == EndedTaken
			return !ended && found.Granted > 0 && found.Granted < c.LeaseUntil
		}
	}
	return true
}
