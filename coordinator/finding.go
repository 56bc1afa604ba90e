package coordinator

import (
	"fmt"
	"slices"
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
