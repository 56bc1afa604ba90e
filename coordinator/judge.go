package coordinator

import (
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// recognise takes a grant of this process for the claim's if the record found is of it: its write has arrived, although
// it was not acknowledged. That may be the pending grant, or one before it that arrived late.
func (h *Hold) recognise(found *Slot) {
	if found == nil || found.Node != h.Node || found.Nonce == "" {
		return
	}
	if found.Term > h.Term && slices.Contains(h.granted, found.Nonce) {
		h.PendingTerm, h.PendingNonce = found.Term, found.Nonce
	}
	if found.Nonce == h.PendingNonce {
		h.acknowledge()
	}
}

// Finding is the meaning, for a holder, of the record that it finds.
type Finding int

const (
	// FoundOurs: the record is ours. Go on.
	FoundOurs Finding = iota
	// FoundFenced: another node has taken over. Stop issuing.
	FoundFenced
	// FoundLost: ZooKeeper lost our record. Write it again while the lease runs.
	FoundLost
)

// judge combines the findings on the cluster's record and on ours. Another holder fences us even if the cluster's
// record is lost: our lease may have ended although our clock, which may be behind, says that it runs. Exception: on an
// older copy of our record, a holder that has not confirmed does not fence.
func (hold holdState) judge(v view, mine Cluster) (Finding, string) {
	cluster := JudgeCluster(v.cl, mine.UUID, max(hold.Incarnation, mine.Incarnation))
	finding := judgeSlot(v.slot, hold.Claim)
	older := hold.wentBack(v.slot, v.stat)
	if older && finding == FoundFenced && !v.slot.Confirmed {
		finding = FoundLost
	}
	switch {
	case cluster == FoundFenced:
		return cluster, fmt.Sprintf("this ZooKeeper now holds cluster %s, not %s", v.cl.UUID, mine.UUID)
	case finding == FoundFenced:
		return finding, v.slot.heldAt(hold.Term)
	case cluster == FoundLost:
		return cluster, "ZooKeeper has lost the cluster record"
	case finding == FoundLost && v.slot == nil:
		return finding, "ZooKeeper has lost the worker's record"
	case finding == FoundLost:
		return finding, "ZooKeeper has an older record of the worker: " + v.slot.heldAt(hold.Term)
	case older || v.slot.LeaseUntil < hold.LeaseUntil:
		return FoundLost, "ZooKeeper has an older copy of the worker's record"
	}
	return finding, ""
}

// JudgeCluster returns the meaning of the cluster's record for a holder of the cluster uuid that knows an incarnation
// of it. A newer cluster in its place gives way to that holder while no node has confirmed in it.
func JudgeCluster(found *Cluster, uuid string, incarnation int64) Finding {
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

// judgeSlot says what the record found in a slot means for its holder (C19). found is nil if there is none.
//
// It compares incarnations first. A record of an earlier incarnation is an older copy: a loss. One of a later
// incarnation fences if it is confirmed, because its holder has waited for the earlier one and has issued IDs since. If
// it is not confirmed, a new node that did not know of the holder has written it: a loss. In the same incarnation a
// higher term fences, an equal term fences if it is confirmed, and a lower term is an older copy. A release of our
// record by an operator fences in every incarnation.
func judgeSlot(found *Slot, mine Claim) Finding {
	switch {
	case found == nil:
		return FoundLost
	case mine.carriedBy(*found):
		return FoundOurs
	case found.ReleasedBy != "" && found.Node == mine.Node && found.Term > mine.Term:
		return FoundFenced // an operator released it; no incarnation changes that (C30)
	case found.Incarnation > mine.Incarnation && found.Confirmed:
		return FoundFenced
	case found.Incarnation != mine.Incarnation:
		return FoundLost
	case found.Term > mine.Term:
		return FoundFenced
	//mutant:c19-confirmed-equal-term-overwritten by sim -> case false:
	case found.Term == mine.Term && found.Confirmed:
		return FoundFenced
	}
	return FoundLost
}

// wentBack reports whether ZooKeeper has lost our last acknowledged write of the slot. It has if the record has a lower
// version, or the same version from another writer.
func (hold holdState) wentBack(found *Slot, stat store.Stat) bool {
	return found != nil && hold.Heard != Chain{} &&
		(stat.Version < hold.Heard.Version || stat.Version == hold.Heard.Version && !hold.carriedBy(*found))
}

// heldAt says for people who holds the slot.
func (s Slot) heldAt(ours int64) string {
	return fmt.Sprintf("node %s (%s) holds the worker at term %d, ours was %d", s.Node, s.Name, s.Term, ours)
}

// showsLoss reports whether a record that fences us also shows that ZooKeeper has lost our confirmed one. Another
// cluster in the place of ours cannot be frozen.
func (hold holdState) showsLoss(v view, mine Cluster) bool {
	return v.slot != nil && JudgeCluster(v.cl, mine.UUID, hold.Incarnation) != FoundFenced &&
		(hold.wentBack(v.slot, v.stat) || hold.wasLost(*v.slot))
}

// wasLost reports whether another node's record of our slot proves that ZooKeeper had lost our confirmed one. A
// rightful next holder has a later first term and our holding in its history, and began when our lease had expired by
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
