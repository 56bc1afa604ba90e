package seqstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/zkstore"
)

// NoteLoss says that ZooKeeper has lost data. The next Round deals with it. found says what shows it.
func (i *Issuer) NoteLoss(found string) {
	select {
	case i.signs <- found:
	default: // Round has not seen the last one
	}
	i.Wake()
}

// hear takes over what NoteLoss was told.
func (i *Issuer) hear() {
	select {
	case reason := <-i.signs:
		i.noteLoss(reason)
	default:
	}
}

func (i *Issuer) noteLoss(found string) {
	if !i.loss {
		i.cfg.Log.Warn("ZooKeeper may have lost data; comparing the records of all sequences", "epoch", i.link.epoch, "found", found)
	}
	i.loss = true
}

// follow reads /seq, if that is due, and finds the sequences that operators have changed. followed
// means that it was read. The first node with a confirmed worker creates the record.
func (i *Issuer) follow(ctx context.Context, cluster ClusterInfo) (followed bool, err error) {
	now := i.cfg.Mono()
	if i.follows != 0 && now-i.follows < int64(i.cfg.Pulse.Apart(i.cfg.Follow)) {
		return false, nil
	}
	v, err := i.lookState(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case v.state == nil && i.state == nil && i.unconfirmed(cluster) > 0:
		return false, nil
	case v.state == nil && i.state == nil:
		if err := i.createState(ctx, cluster); err != nil {
			return false, err
		}
		return i.follow(ctx, cluster)
	case i.state != nil && i.state.Cluster != cluster.UUID:
		i.leave()
		return i.follow(ctx, cluster)
	case v.state != nil && v.state.Cluster != cluster.UUID:
		return false, fmt.Errorf("%s belongs to cluster %s, and this node to cluster %s. Remove it, or use another cluster name", statePath, v.state.Cluster, cluster.UUID)
	case i.state == nil:
		i.link.epoch = v.state.Epoch
		i.learn(v.state)
		i.markChanged(v.state.Changed, false)
	case judgeState(v.state, i.state) == foundLost, v.state.Epoch > i.state.Epoch:
		i.noteLoss(statePath + " is missing, older than before, or of a later epoch")
	default:
		i.markChanged(v.state.since(i.state.Changes))
		i.learn(v.state)
	}
	i.follows, i.lastRead = max(now, 1), now
	return true, nil
}

// leave drops all that the node knows, because it has joined another cluster.
func (i *Issuer) leave() {
	i.remove(func(s *series) bool {
		s.change(func() { s.vanish(0); s.forgotten = true })
		return i.gone.add(s)
	})
	i.state, i.loss, i.link.epoch = nil, false, 0
}

// learn takes over /seq as it was read. If it has a new epoch, the node waits for the confirming time again
// before it writes. In that time, nodes put back the records that they know better. The skip after a loss
// does not cover a next value that was raised, nor a sequence that was created again.
func (i *Issuer) learn(st *State) {
	if was := i.state; st.Epoch > 1 && (was == nil || st.Epoch > was.Epoch) {
		i.link.since, i.lastEarlier = i.cfg.Mono(), i.lastRead
	}
	i.state = st
}

// lookState reads /seq. It reads again after a sync if the first look seems to show a loss of data.
func (i *Issuer) lookState(ctx context.Context) (view, error) {
	for synced := false; ; synced = true {
		if synced {
			if err := i.cfg.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
				return view{}, err
			}
		}
		found, err := i.cfg.Store.GetAll(ctx, statePath, livePath)
		if err != nil {
			return view{}, err
		}
		i.nodes = int64(found[1].Stat.Count)
		v, err := parseView(found[:1])
		if err != nil || synced || judgeState(v.state, i.state) == foundGood {
			return v, err
		}
	}
}

// createState creates /seq. Where data may have been lost before, the first epoch is 2: then nobody
// creates a sequence without saying where it starts.
func (i *Issuer) createState(ctx context.Context, cluster ClusterInfo) error {
	first := State{Cluster: cluster.UUID, Epoch: 1}
	if cluster.LostData {
		first.Epoch = 2
	}
	_, err := i.cfg.Store.Create(zkstore.OnSession(ctx, i.link.session), statePath, first.marshal(), zkstore.Persistent)
	if errors.Is(err, zkstore.ErrExists) {
		return nil
	}
	return err
}

// markChanged marks series whose record must be read again. It makes a series for each name, so that
// the node knows the record if ZooKeeper loses it.
func (i *Issuer) markChanged(names []string, all bool) {
	for _, name := range names {
		i.named(name).mark(true)
	}
	if all {
		for _, s := range i.list() {
			s.mark(false)
		}
	}
}

// mark notes that the record must be read. If the node knows none, it reads only if it was told of the name.
func (s *series) mark(told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = s.stale || told || s.known != nil
}

// recover deals with a loss of data: it raises the epoch, unless another node has. The work on each series
// then puts back what this node knows better. If it fails, the next round begins anew.
func (i *Issuer) recover(ctx context.Context, cluster ClusterInfo) error {
	if err := i.raiseEpoch(zkstore.OnSession(ctx, i.link.session), cluster); err != nil {
		return err
	}
	i.loss, i.follows = false, 0
	return nil
}

// recoverAlone deals with a loss of data while the node has no worker: it may be the only one that has noticed the
// loss, and may get no worker for long, because registration is frozen. It does not create
// a missing /seq: nodes with workers do.
func (i *Issuer) recoverAlone(ctx context.Context) error {
	if !i.loss || i.state == nil || i.link.session == 0 {
		return nil
	}
	v, err := i.lookState(ctx)
	if err != nil || v.state == nil || v.state.Cluster != i.state.Cluster {
		return err
	}
	return i.recover(ctx, ClusterInfo{UUID: i.state.Cluster})
}

// raiseEpoch writes /seq with a higher epoch, unless it has a higher one than the node knew when it
// noticed the loss. It makes no write in a later session: there ZooKeeper may have lost data again, and
// versions may have come back.
func (i *Issuer) raiseEpoch(ctx context.Context, cluster ClusterInfo) error {
	for {
		if err := i.cfg.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
			return err
		}
		found, err := i.cfg.Store.GetAll(ctx, statePath)
		if err != nil {
			return err
		}
		v, err := parseView(found)
		if err != nil {
			return err
		}
		next := State{Cluster: cluster.UUID}
		if i.state != nil {
			next = *i.state
		}
		if judgeState(v.state, i.state) != foundLost {
			next.Epoch = i.link.epoch
		}
		if v.state != nil {
			if v.state.Epoch > next.Epoch {
				i.markChanged(v.state.Changed, true)
				i.learn(v.state)
				return nil
			}
			if v.state.Changes > next.Changes {
				next.Changes, next.Changed = v.state.Changes, v.state.Changed
			}
			next.Purged = max(next.Purged, v.state.Purged)
		}
		next.Epoch = max(next.Epoch, i.link.epoch, 1) + 1
		if v.state == nil {
			_, err = i.cfg.Store.Create(ctx, statePath, next.marshal(), zkstore.Persistent)
		} else {
			_, err = i.cfg.Store.Set(ctx, statePath, next.marshal(), v.version)
		}
		if err != nil && !errors.Is(err, zkstore.ErrBadVersion) && !errors.Is(err, zkstore.ErrExists) && !errors.Is(err, zkstore.ErrNoNode) {
			return err
		}
	}
}

// restore puts the record of a series back after a loss of data, if the node knows a newer one than v has.
// again means that v is out of date then.
func (i *Issuer) restore(ctx context.Context, s *series, v view) (again bool, err error) {
	s.mu.Lock()
	lost, known, highest := v.state.Epoch > s.epoch, s.known, s.highest
	s.mu.Unlock()
	if !lost || known == nil || v.record == nil && known.isPurged(v.state.Purged) {
		return false, nil
	}
	c, due := putBack(v.record, *known, highest)
	if !due {
		return false, nil
	}
	if v.record == nil {
		c.record.Gen = max(c.record.Gen, v.state.Purged)
	}
	if _, err := i.settleKey(ctx, s, v, &c.record); err != nil { // first, so that no record is without its key
		return true, err
	}
	r := c.written(i.cfg.Nonce(), i.cfg.By)
	if err = i.writeBack(ctx, s, v, r); err == nil {
		s.change(func() { s.known, s.stale = &r, true })
	}
	if outpaced(err) {
		err = nil
	}
	return true, err
}

// writeBack writes a record that ZooKeeper has lost.
func (i *Issuer) writeBack(ctx context.Context, s *series, v view, r Record) error {
	check := zkstore.CheckOp{Path: statePath, Version: v.version}
	if v.record == nil {
		return i.writeCreated(ctx, []zkstore.Op{check}, s.name, r, nil)
	}
	return i.cfg.Store.Multi(zkstore.OnSession(ctx, i.link.session), setRecord(check, s.name, r, v.stat.Version)...)
}
