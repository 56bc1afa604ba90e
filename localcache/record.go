package localcache

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/flaked/flaked/internal/core/limits"
)

// Record is the content of the state file: the fields that this package compares, and a
// payload that it stores for its caller. Times are Unix milliseconds.
type Record struct {
	// ReservedUntil is the reserved bound: no ID of this claim has a timestamp >= ReservedUntil.
	ReservedUntil int64 `json:"reserved_until"`
	// LeaseUntil is the lease bound. ServedMs is the time that the node has served, in milliseconds. An older value of
	// either is safe, because it only shortens what the node may do.
	LeaseUntil int64 `json:"lease_until"`
	ServedMs   int64 `json:"served_ms,omitempty"`
	// LastBeat has the facts of the node's last heartbeat. An older value is safe, too.
	LastBeat LastBeat `json:"heard,omitzero"`
	// Journal counts the writes of another file of the state directory. A copy of that with a lower count is an old
	// one. An older value is safe as long as that file was not put back.
	Journal uint64 `json:"journal,omitempty"`
	// Released reports whether the claim was given up on purpose. No part of a released
	// record may be resumed. Invalidate sets it.
	Released bool `json:"released,omitempty"`
	// Fingerprint identifies the file and the machine that the record was written to. Save
	// sets it and ignores the caller's value.
	Fingerprint Fingerprint `json:"fingerprint"`
	// Payload is everything else that the node stores, as JSON. After a successful Save of a new payload, a restart
	// never finds any part of an older one. Save returns ErrTooLarge if it does not fit.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Generation counts the writes of this file, failed ones included. Save sets it and ignores the caller's value.
	Generation uint64 `json:"-"`
}

// LastBeat has what the node has heard of ZooKeeper with its heartbeats: the values of coordinator.Chain, of
// coordinator.Claim.BootEnd, and of timeguard.Stamped. The package only stores them.
type LastBeat struct {
	// Began and Sent are the times at which the first heartbeat of the chain was sent, and the last one. Version is
	// that of the worker's record since then.
	Began   int64 `json:"began,omitempty"`
	Sent    int64 `json:"sent,omitempty"`
	Version int32 `json:"version,omitempty"`
	// Ends is the end of the lease by the boot clock.
	Ends int64 `json:"ends,omitempty"`
	// The rest is of the last acknowledged write. LastSent is the time at which the node sent it, and Stamp the
	// leader's time. Boot, Wall, Least and Most are the moment of the acknowledgement.
	LastSent int64 `json:"last_sent,omitempty"`
	Stamp    int64 `json:"stamp,omitempty"`
	Boot     int64 `json:"boot,omitempty"`
	Wall     int64 `json:"wall,omitempty"`
	Least    int64 `json:"least,omitempty"`
	Most     int64 `json:"most,omitempty"`
}

// clone returns a copy that shares no memory with r.
func (r Record) clone() Record {
	r.Payload = slices.Clone(r.Payload)
	return r
}

// follows reports whether old may stay in the other block beside r. It may if old, found alone
// and with its ReservedUntil raised by the slack, is a safe stand-in for r. ReservedUntil may
// have risen by the slack at most, LeaseUntil must not have fallen, ServedMs, LastBeat and Journal any
// value. Released, Fingerprint and Payload must be equal: an old payload could name a slot that
// the node has released, or lack one that it has acquired. See the argument in statefile.go.
func (r Record) follows(old Record) bool {
	if r.Released != old.Released || r.Fingerprint != old.Fingerprint {
		return false
	}
	if !bytes.Equal(r.Payload, old.Payload) {
		return false
	}
	rise := old.ReservedUntil <= r.ReservedUntil && r.ReservedUntil <= raise(old.ReservedUntil)
	return rise && old.LeaseUntil <= r.LeaseUntil
}

// raise returns m plus limits.BoundSlack, at most math.MaxInt64.
func raise(m int64) int64 {
	slack := limits.BoundSlack.Milliseconds()
	if m > math.MaxInt64-slack {
		return math.MaxInt64
	}
	return m + slack
}
