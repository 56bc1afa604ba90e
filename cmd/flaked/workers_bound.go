package main

import (
	"errors"
	"io/fs"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/node"
)

// boundSetAside returns the highest reserved bound, in Unix milliseconds, that a state
// directory held for a worker before flaked reset-identity set its state aside. It returns an
// error if that bound is not certain: the state can still be resumed, it was damaged or copied,
// or the directory had none of this worker.
func boundSetAside(dir string, found coordinator.Holding, now time.Time) (int64, error) {
	wait := instant(found.Slot.H, now)
	bound, any := int64(0), false
	for _, at := range stateDirs(dir, maxWorkers) {
		l, _, err := localcache.Inspect(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, stateError(at, err) // another release may resume it
		}
		ours, err := isOf(l.Record, found)
		if err != nil {
			return 0, stateError(at, err)
		}
		if l.Status == localcache.StatusRecord && ours {
			return 0, exitWith(exitFailure, "the state in %s is that of worker %d and can still be resumed: flaked reset-identity --state-dir %s first; nothing was changed", at, found.Worker, dir)
		}
		aside, err := localcache.ReadAside(at)
		if errors.Is(err, fs.ErrNotExist) && at != dir {
			continue
		}
		if err != nil {
			return 0, stateError(at, err)
		}
		for _, a := range aside {
			l := a.Loaded
			ours, err := isOf(l.Record, found)
			switch {
			case err != nil:
				return 0, stateError(at, err)
			case l.Status == localcache.StatusCorrupt, l.Damaged && ours:
				return 0, exitWith(exitFailure, "%s was damaged before it was set aside, so it is not known how far worker %d came: wait until its lease ends, %s; nothing was changed", a.Backup, found.Worker, wait)
			case a.Copied && ours:
				return 0, exitWith(exitFailure, "%s was a copy of another node's state: that node may be running, and have come further; nothing was changed", a.Backup)
			case ours:
				bound, any = max(bound, l.Record.M), true
			}
		}
	}
	if !any {
		return 0, exitWith(exitFailure, "no state of worker %d of this cluster was set aside in %s: name the directory of its node, or wait until its lease ends, %s; nothing was changed", found.Worker, dir, wait)
	}
	return bound, nil
}

// isOf reports whether a record is of the node that holds, or last held, the worker.
func isOf(kept localcache.Record, found coordinator.Holding) (bool, error) {
	r, err := node.DecodeRecord(kept)
	return r.Cluster.UUID == found.Cluster.UUID && r.Claim.Worker == found.Worker && r.Claim.Node == found.Slot.Node, err
}
