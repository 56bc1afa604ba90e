package node

import (
	"encoding/json"
	"fmt"

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
// beside the payload, because a changed payload costs a second sync: ReservedUntil, LeaseUntil, ServedMs, LastBeat and
// Journal.
func (r LocalRecord) Encode() (localcache.Record, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return localcache.Record{}, fmt.Errorf("encode the local record: %w", err)
	}
	return localcache.Record{ReservedUntil: r.Claim.ReservedUntil, LeaseUntil: r.Claim.LeaseUntil, ServedMs: r.ServedMs,
		LastBeat: lastBeatOf(r.Claim), Journal: r.Journal, Payload: payload}, nil
}

func lastBeatOf(c coordinator.Claim) localcache.LastBeat {
	acked := c.Last.Acked
	return localcache.LastBeat{
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
	b := kept.LastBeat
	r.Claim.Chain = coordinator.Chain{Began: b.Began, Sent: b.Sent, Version: b.Version}
	r.Claim.Last = timeguard.Stamped{
		Sent: timeguard.Moment{Most: b.LastSent}, Stamp: b.Stamp,
		Acked: timeguard.Moment{Boot: b.Boot, Wall: b.Wall, Least: b.Least, Most: b.Most},
	}
	r.Claim.BootEnd, r.Journal = b.Ends, kept.Journal
	return r, nil
}
