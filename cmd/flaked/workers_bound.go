package main

import (
	"errors"
	"io/fs"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/node"
)

// boundSetAside returns the highest reserved bound, in Unix milliseconds, that a state
// directory held for a worker before flaked reset-identity set its state aside. It returns an
// error if that bound is not certain: the state can still be resumed, it was damaged or copied,
// or the directory had none of this worker.
func boundSetAside(dir string, found coordinator.Holding, now time.Time) (int64, error) {
	wait := clusterview.Instant(found.Slot.LeaseUntil, now)
	bound, any := int64(0), false
	for _, at := range []string{dir} {
		l, _, err := localcache.Inspect(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, stateError(at, err) // another release may resume it
		}
		ours, err := isOf(l.Record, found)
		if err != nil {
			return 0, stateError(at, err)
		}
		if l.Status == localcache.StatusRecord && ours {
			return 0, exitWith(exitFailure, "the state in %s is that of worker %d and can still be resumed. Nothing was changed. Run `flaked reset-identity --state-dir %s` first", at, found.Worker, dir)
		}
		backups, err := localcache.ReadBackups(at)
		if errors.Is(err, fs.ErrNotExist) && at != dir {
			continue
		}
		if err != nil {
			return 0, stateError(at, err)
		}
		for _, a := range backups {
			l := a.Loaded
			ours, err := isOf(l.Record, found)
			switch {
			case err != nil:
				return 0, stateError(at, err)
			case l.Status == localcache.StatusCorrupt, l.Damaged && ours:
				return 0, exitWith(exitFailure, "%s was damaged before it became a backup, so the reserved bound of worker %d is unknown. Nothing was changed. Wait until its lease expires, %s", a.Path, found.Worker, wait)
			case a.Copied && ours:
				return 0, exitWith(exitFailure, "%s was a copy of another node's state. That node may be running, and have a higher reserved bound. Nothing was changed", a.Path)
			case ours:
				bound, any = max(bound, l.Record.ReservedUntil), true
			}
		}
	}
	if !any {
		return 0, exitWith(exitFailure, "no backup of worker %d of this cluster found in %s. Nothing was changed. Give the state directory of its node, or wait until its lease expires, %s", found.Worker, dir, wait)
	}
	return bound, nil
}

// isOf reports whether a record is of the node that holds, or last held, the worker.
func isOf(kept localcache.Record, found coordinator.Holding) (bool, error) {
	r, err := node.DecodeRecord(kept)
	return r.Cluster.UUID == found.Cluster.UUID && r.Claim.Worker == found.Worker && r.Claim.Node == found.Slot.Node, err
}
