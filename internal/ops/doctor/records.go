package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// checkRecords uses ZooKeeper as a node does. It ends at a failure after which the rest would make no sense. own has
// the labels of the node that runs here.
func checkRecords(ctx context.Context, cfg Config, d stateDir) (found []Finding, own coordinator.Labels) {
	cfg.ZK.CallTimeout = cfg.Timeout
	err := store.WithZK(ctx, cfg.ZK, func(z *store.ZK) error {
		p, err := z.Probe(ctx, func() int64 { return time.Now().UnixMilli() })
		f, usable := judgeProbe(z.Root(), cfg, p, err)
		if found = f; !usable {
			return nil
		}
		cl, err := coordinator.ReadCluster(ctx, z)
		var others []timeguard.Offset
		var entries []coordinator.Entry
		var unread error
		if err == nil {
			entries, unread = coordinator.ReadSlots(ctx, z, cl)
			own = runningNode(entries, d)
			cfg = cfg.asRunning(own)
		}
		found = append(found, judgeCluster(cl, err, cfg, d, time.Now())...)
		missing := err
		now := p.Stamp
		if now == 0 { // it may read but not write
			now = time.Now().UnixMilli()
		}
		if err == nil {
			if unread != nil {
				found = append(found, failed("workers", unread))
				return nil
			}
			found = append(found, judgeWorkers(cl, entries, now))
			others = peers(entries, d, p)
		}
		if p.Stamp != 0 {
			found = append(found, judgeOffsets(p, others)...)
		}
		if missing == nil {
			found = append(found, checkFollowers(ctx, z, coordinator.Roster{
				Cluster: cl, Entries: entries, Now: time.Now().UnixMilli(), LeaderNow: now,
			})...)
			found = append(found, checkPeers(ctx, cfg, z)...)
		}
		return nil
	})
	if err != nil {
		found = append(found, failed("session", err))
	}
	return found, own
}

func failed(check string, err error) Finding {
	f := Finding{Check: check, Level: Fail, Text: err.Error(), Advice: "Check ZooKeeper's log"}
	switch {
	case errors.Is(err, store.ErrUnreachable):
		f.unreachable, f.Advice = true, health.AdviceZooKeeperDown
	case errors.Is(err, store.ErrDenied):
		f.Advice = health.AdviceZooKeeperDenied
	case errors.Is(err, store.ErrQuota):
		f.Advice = health.AdviceQuota
	case errors.Is(err, store.ErrLocalSession):
		f.Advice = health.AdviceLocalSessions
	}
	return f
}

const (
	slowWrite = 100 * time.Millisecond
	asUsual   = "a node creates it with the cluster"
)

// judgeProbe judges the session, access and latency. usable reports whether the cluster's
// records may be readable, so that the checks of these can go on.
func judgeProbe(root string, cfg Config, p store.Probe, err error) (found []Finding, usable bool) {
	if err != nil && p.At == "" {
		f := failed("session", err)
		if f.unreachable {
			f.Text = fmt.Sprintf("no session within %s", cfg.Timeout)
		}
		return []Finding{f}, false
	}
	session := Finding{Check: "session", Level: OK, Text: "there is a quorum, and it gave a session"}
	if n := len(p.Members); n > 0 {
		session.Text = fmt.Sprintf("there is a quorum of the %d servers", n)
		if hosts := strings.Count(cfg.ZK.Connect, ",") + 1; hosts == 1 && n > 1 {
			session.Level, session.Text = Warn, fmt.Sprintf("the ensemble has %d servers, and --zk names one", n)
			session.Advice = "Name all of them in --zk. Otherwise nodes lose ZooKeeper with that one server"
		}
	}
	if !p.Modern {
		session.Level, session.Text, session.Advice = Warn, "the server is older than ZooKeeper 3.5",
			"Upgrade ZooKeeper: flaked is tested with 3.8"
	}
	found = append(found, session)
	switch {
	case errors.Is(err, store.ErrDenied):
		f := failed("access", err)
		f.Text = "this user may not create records in " + p.At
		if p.Root {
			return append(found, f), true // reading may still be allowed
		}
		f.Advice = fmt.Sprintf("Let an administrator create %s for this user, or give each user a chroot: --zk "+
			"HOST:PORT/CHROOT", root)
		return append(found, f), false
	case err != nil:
		return append(found, failed("access", err)), false
	}
	access := Finding{Check: "access", Level: OK, Text: "records can be created, changed and deleted in " + p.At}
	if !p.Chroot {
		access.Text += ". The chroot does not exist yet: " + asUsual
	}
	if p.Open && p.Root {
		access.Text += ". Anyone who reaches ZooKeeper may change them too (--zk-auth-file prevents that)"
	}
	latency := Finding{Check: "latency", Level: OK, Text: fmt.Sprintf("a write takes %s, a read "+
		"%s", round(p.Write), round(p.Read))}
	if p.Write > slowWrite {
		latency.Level, latency.Advice = Warn, "Check the disks of the ZooKeeper servers and the network to them"
	}
	return append(found, access, latency), true
}

// judgeCluster compares the cluster's record with the node's settings and with
// its state directory.
func judgeCluster(cl coordinator.Cluster, err error, cfg Config, d stateDir, now time.Time) []Finding {
	f := Finding{Check: "cluster", Level: OK}
	switch {
	case errors.Is(err, coordinator.ErrNoCluster) && cfg.Bootstrap:
		f.Text = fmt.Sprintf("cluster %q does not exist yet: the node creates it", cfg.ZK.Cluster)
		return []Finding{f}
	case errors.Is(err, coordinator.ErrNoCluster):
		f.Level, f.Text = Fail, fmt.Sprintf("cluster %q does not exist", cfg.ZK.Cluster)
		f.Advice = health.AdviceNoCluster
		return []Finding{f}
	case err != nil:
		return []Finding{failed("cluster", err)}
	}
	f.Text = fmt.Sprintf("%s (%s): this node's settings match", cfg.ZK.Cluster, cl.UUID)
	if err := cfg.Fits(cl); err != nil {
		f.Level, f.Text = Fail, err.Error()
	}
	if d.belongs() && d.record.Cluster.UUID != cl.UUID {
		f.Level = Fail
		f.Text = fmt.Sprintf("%s belongs to cluster %s, and this is %s", d.path, d.record.Cluster.UUID, cl.UUID)
		f.Advice = health.AdviceOtherCluster
	}
	found := []Finding{f}
	if p, frozen := health.DescribeCluster(cfg.ZK.Cluster, cl, now).FrozenProblem(); frozen {
		found = append(found, Finding{Check: "cluster", Level: Warn, Text: p.Text, Advice: p.Advice})
	}
	return append(found, judgeLayout(cl, now))
}

const year = 365 * 24 * time.Hour

// judgeLayout judges how long the layout's timestamps last.
func judgeLayout(cl coordinator.Cluster, now time.Time) Finding {
	layout, err := worker.ParseLayout(cl.Layout)
	if err != nil {
		return Finding{Check: "layout", Level: Fail, Text: err.Error(), Advice: "The cluster was created by a newer " +
			"release. Upgrade this one"}
	}
	end := layout.Expires()
	f := Finding{Check: "layout", Level: OK, Text: fmt.Sprintf("the layout's time lasts until %s",
		end.Format(time.DateOnly))}
	switch left := end.Sub(now); {
	case left <= 0:
		f.Level, f.Text = Fail, fmt.Sprintf("the layout's time was used up on %s", end.Format(time.DateOnly))
		f.Advice = health.AdviceTimeEnding
	case left < 5*year:
		f.Level, f.Advice = Warn, health.AdviceTimeEnding
	}
	return f
}

// judgeWorkers judges how many workers are free. now is in Unix milliseconds.
func judgeWorkers(cl coordinator.Cluster, entries []coordinator.Entry, now int64) Finding {
	s := health.CountWorkers(cl, entries, now)
	f := Finding{Check: "workers", Level: OK, Text: fmt.Sprintf("%d of %d workers are free: %d held, %d releasing, "+
		"%d record-missing", s.Free, s.Slots, s.Held, s.Releasing, s.RecordMissing)}
	switch {
	case s.Free <= 0:
		f.Level, f.Advice = Fail, health.AdviceFewFree
	case s.FewFree():
		f.Level, f.Advice = Warn, health.AdviceFewFree
	}
	return f
}
