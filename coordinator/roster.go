package coordinator

import (
	"context"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Roster has the workers of a cluster as they stand in ZooKeeper, and the time at which they were read: by our clock
// and by that of ZooKeeper's leader, Unix ms.
type Roster struct {
	Cluster        Cluster
	Entries        []Entry
	Now, LeaderNow int64
}

// Roster reads all workers. They are no older than the call: its first write brings the server that answers up to date.
func (o Operator) Roster(ctx context.Context) (all Roster, err error) {
	clock, err := o.compareClock(ctx)
	if err != nil {
		return all, err
	}
	if all.Cluster, err = ReadCluster(ctx, o.Store); err != nil {
		return all, err
	}
	all.Entries, err = ReadSlots(ctx, o.Store, all.Cluster)
	all.Now = o.Now()
	all.LeaderNow = clock.leaderNow(all.Now)
	return all, err
}

// NotFollowed returns the workers of nodes that run and have not followed the changes of named sequences as far as at.
// A node that is cut off does not count: it issues by what it knew before for the sequence's --hold, and no longer.
func (all Roster) NotFollowed(at Change) (behind []Entry) {
	for _, e := range all.Entries {
		//mutant:s29-by-live-locks by TestNotFollowed -> if e.Live && !e.Slot.Followed.Reaches(at) {
		if (e.Live || all.Reports(e)) && !e.Slot.Followed.Reaches(at) {
			behind = append(behind, e)
		}
	}
	return behind
}

// Reports reports whether the holder of a worker seems to run: it has not stopped, and the record was written within
// ReportWindow. Its live lock may be missing for a while: see PeerWait.
func (all Roster) Reports(e Entry) bool {
	window := ReportWindow(all.Cluster.ConfirmTime(), time.Duration(e.Slot.HeartbeatMs)*time.Millisecond)
	r := store.Record{Found: !e.Missing, Stat: e.Stat}
	holds := e.Holds() || e.Slot.StandsIn || e.Slot.Term < 0
	return r.Found && holds && writtenWithin(e.Slot, r, all.LeaderNow, all.Now, window)
}

// Reaches reports whether f has the changes as far as at.
func (f Followed) Reaches(at Change) bool {
	return f.Last != nil && f.Last.Incarnation >= at.Incarnation && f.Last.Number >= at.Number
}

// Disconnected returns the workers whose last holder is not connected, but may come back with its lease: a holder that
// has stopped, too. By either clock the lease may run. A record that is missing or cannot be read, or replaces one that
// was lost, may be of such a holder.
func (all Roster) Disconnected() (away []Entry) {
	for _, e := range all.Entries {
		a := all.Cluster.Availability(e.Slot, e.Live, all.Now, all.LeaderNow)
		if a == Stopped || a == Disconnected {
			away = append(away, e)
		}
	}
	return away
}
