package seq

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// gather reads /cluster, /seq and the record of a series, and what else a decision needs. It returns a *lostError if
// ZooKeeper has lost data.
//
// With reuse, gather reads no record if the last write of the series has left one in this session, and /seq was not
// read in a later state since. If ZooKeeper has changed all the same, the next write fails, because versions only grow
// within a session.
func (rw roundIO) gather(ctx context.Context, s *series, reuse bool) (v view, err error) {
	s.Mu.Lock()
	if reuse && !s.Stale && s.Last != nil { // a new session makes all records stale
		v.View = *s.Last
	}
	s.Mu.Unlock()
	if v.State == nil || rw.losses.Finding(v.Snapshot) != record.Good { // not record.Lost: a view from before shows no loss
		if v, err = rw.look(ctx, s, false); err != nil {
			return view{}, err
		}
	}
	switch rw.losses.Finding(v.Snapshot) {
	case record.Lost:
		return view{}, &lostError{reason: record.ClusterPath + " or " + record.StatePath + " is missing, or older than before"}
	case record.Later:
		return view{}, &lostError{later: true}
	}
	if v.State == nil { // nobody has put it back in this incarnation yet: a node that stops may ask so early
		return view{}, &lostError{later: true}
	}
	err = rw.readMore(ctx, &v, s.wants(v, rw.issuer.now())) // fills in v, so it is no part of the return statement
	return v, err
}

// look reads /cluster, /seq and the record of a series, after a sync if synced is true.
//
// A server may lag behind. So look syncs first if the outcome of a write is open, or if the record must be compared in a
// new incarnation or with the journal. It reads again after a sync if the first read seems to show a loss.
func (rw roundIO) look(ctx context.Context, s *series, synced bool) (view, error) {
	s.Mu.Lock()
	known := s.Known
	synced = synced || s.hasOpenWrites() || s.journaled != nil || rw.losses.Incarnation() > s.incarnation
	s.Mu.Unlock()
	paths := []string{record.ClusterPath, record.StatePath, record.Path(s.Name)}
	return rw.readTwice(ctx, synced, paths, func(found []store.Record) (v view, err error) {
		v.before = known
		v.Snapshot, err = record.ParseSnapshot(found)
		return v, err
	})
}

// lookState reads /cluster and /seq, and the node's slot, which shows when ZooKeeper's leader has stamped the last
// heartbeat. It reads again after a sync if the first read seems to show a loss.
func (rw roundIO) lookState(ctx context.Context) (view, error) {
	paths := []string{record.ClusterPath, record.StatePath}
	if slot := rw.issuer.cfg.Tenure.Slot(rw.session); slot.Path != "" {
		paths = append(paths, slot.Path)
	}
	return rw.readTwice(ctx, false, paths, func(found []store.Record) (v view, err error) {
		v.Snapshot, err = record.ParseSnapshot(found[:2])
		v.leader = v.StateWritten
		for _, slot := range found[2:] {
			v.leader = max(v.leader, slot.Stat.Mtime)
		}
		return v, err
	})
}

// readTwice reads the records at paths, and makes a view of them by parse. If that seems to show a loss of data, it
// reads once more after a sync. Also the first read follows a sync if synced is true.
func (rw roundIO) readTwice(
	ctx context.Context, synced bool, paths []string, parse func([]store.Record) (view, error),
) (view, error) {
	for reads := 1; ; reads++ {
		if synced {
			if err := rw.issuer.cfg.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
				return view{}, err
			}
		}
		sent := rw.issuer.now()
		found, err := rw.issuer.cfg.Store.GetAll(ctx, paths...)
		if err != nil {
			return view{}, err
		}
		answered := rw.issuer.cfg.Elapsed.Now()
		v, err := parse(found)
		if err != nil {
			return view{}, err
		}
		v.SentAt, v.AnsweredAt = sent, answered
		if rw.losses.Finding(v.Snapshot) == record.Good && v.State != nil &&
			record.Compare(v.Record, v.before, v.State.Purged) != record.Lost {
			return v, nil
		}
		// twice, because GetAll is not atomic: a purge may have come between /seq and the record
		if synced && reads > 1 {
			return v, nil
		}
		synced = true
	}
}

// readMore reads what a decision needs besides the record into v: the records of templates if there is no record, else
// its request keys, its map key, or both.
func (rw roundIO) readMore(ctx context.Context, v *view, w extraReads) error {
	if len(w.templates) > 0 {
		return rw.readTemplates(ctx, v, w.templates)
	}
	var paths []string
	if w.requestKeys != "" {
		paths = append(paths, record.RequestKeysPath(w.requestKeys))
	}
	if w.mapKey != "" {
		paths = append(paths, record.MapKeyPath(w.mapKey))
	}
	if len(paths) == 0 {
		return nil
	}
	found, err := rw.issuer.cfg.Store.GetAll(ctx, paths...)
	if err != nil {
		return err
	}
	if w.mapKey != "" {
		v.MapKey = &found[len(found)-1]
	}
	if w.requestKeys != "" {
		v.RequestKeys = &record.RequestKeys{Exists: found[0].Found, Version: found[0].Stat.Version}
		v.RequestKeys.Entries, err = record.ParseRequestKeys(found[0].Data)
		return record.DamagedAt(record.RequestKeysPath(w.requestKeys), err)
	}
	return nil
}
