package localcache

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/flaked/flaked/internal/limits"
)

// Record is what the file holds: what this package decides by, and a payload that
// it carries for its caller. Times are Unix milliseconds.
type Record struct {
	// M is the reserved bound: no ID of this holding has a timestamp >= M.
	M int64 `json:"m"`
	// H is the lease bound, and ServedMs how long the node has served, ms. An older
	// value of either is safe: it only shortens what the node may do.
	H        int64 `json:"h"`
	ServedMs int64 `json:"served_ms,omitempty"`
	// Released: the holding was given up on purpose; nothing in the record may be
	// resumed. Set by Invalidate.
	Released bool `json:"released,omitempty"`
	// Fingerprint says which file on which machine the record was written to.
	// Set by Save, ignored in what is saved.
	Fingerprint Fingerprint `json:"fingerprint"`
	// Payload is all else that the node remembers, as JSON. No part of an older
	// payload may stand in for a newer one. See ErrTooLarge.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Generation counts the writes of this file, failed ones too. Set by Save,
	// ignored in what is saved.
	Generation uint64 `json:"-"`
}

// clone shares nothing with r.
func (r Record) clone() Record {
	r.Payload = slices.Clone(r.Payload)
	return r
}

// follows reports whether old may be left beside r in the other block: whether
// old, found alone with its M raised by the slack, is a safe stand-in for r. M may have
// risen by the slack at most, H may not have gone down, and ServedMs may be any. All else
// must be equal: an old payload could claim what was withdrawn since, or miss a slot
// that was granted. See the argument in cache.go.
func (r Record) follows(old Record) bool {
	return old.M <= r.M && r.M <= raise(old.M) && old.H <= r.H &&
		r.Released == old.Released && r.Fingerprint == old.Fingerprint && bytes.Equal(r.Payload, old.Payload)
}

// raise adds the slack to a bound, and stops at the end of time.
func raise(m int64) int64 {
	slack := limits.BoundSlack.Milliseconds()
	if m > math.MaxInt64-slack {
		return math.MaxInt64
	}
	return m + slack
}
