package node

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// Ready returns nil if other nodes may stop now. That needs three things: a request would get an ID now or after a
// short wait; Drain was not called; and the node need not wait for named sequences (see waitsForSequences). Otherwise
// Ready returns the *Refusal.
func (n *Node) Ready() error {
	switch err := n.WhyNoIDs(); {
	case err != nil:
		return err
	case n.peek().drain.asked:
		return errDraining
	case n.waitsForSequences():
		return errSequencesElsewhere
	}
	return nil
}

// errSequencesElsewhere is the error of Ready while the node has just started. See waitsForSequences.
var errSequencesElsewhere = newRefusal(Refusal{Cause: CauseSequences, Phase: Serving})

// errDraining is the error of Ready after Drain.
var errDraining = newRefusal(Refusal{Cause: CauseDraining, Phase: Serving})

// WhyNoIDs returns nil if a request would get an ID, now or after a short wait. Otherwise it returns the *Refusal. It
// makes no ID.
func (n *Node) WhyNoIDs() error {
	t := n.serving.Load()
	if t == nil {
		return n.refusal.Load()
	}
	if err := t.gen.Ready(); err != nil {
		return n.explain(t, err)
	}
	return nil
}

// Began returns a channel that is closed once the node has begun to serve.
func (n *Node) Began() <-chan struct{} { return n.began }

// Drain prepares the stop of the node: from now on Ready returns a *Refusal with CauseDraining,
// so that clients leave. Reserve still makes IDs. If release is true, the node releases its
// worker when it stops, as with Config.ReleaseOnExit.
func (n *Node) Drain(release bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drain = drainState{asked: true, release: release}
}

// Now returns the time of the clock that IDs are made by.
func (n *Node) Now() time.Time { return time.Unix(0, n.clock.Now()) }

// Layout returns the cluster's layout, or the zero Layout while it is not known.
func (n *Node) Layout() worker.Layout {
	return n.peek().layout
}

// Version returns the release of the program, from Config.Labels.
func (n *Node) Version() string { return n.cfg.Labels.Version }

// instant is RFC 3339, always with three digits of milliseconds.
const instant = "2006-01-02T15:04:05.000Z07:00"

// Decode describes an ID in one line of name=value pairs. It returns an *ids.ReplyError with ERR if
// the layout cannot have made the ID, and with NOTREADY while the layout is not known.
func (n *Node) Decode(id worker.ID) (string, error) {
	layout := n.Layout()
	if layout == (worker.Layout{}) {
		return "", replies.ErrNoLayout
	}
	f, err := layout.Decode(id)
	if err != nil {
		return "", replies.New(ids.ERR, err.Error())
	}
	text := fmt.Sprintf("id=%d time=%s timestamp_ms=%d datacenter=%d worker=%d sequence=%d",
		id, layout.Time(f).Format(instant), layout.Start(f.Tick), f.Datacenter, f.Worker, f.Sequence)
	if layout.SegmentBits > 0 {
		text += fmt.Sprintf(" segment=%d", f.Segment)
	}
	if layout.RollbackBits > 0 {
		text += fmt.Sprintf(" rollback=%d", f.Rollback)
	}
	return text, nil
}

// Cluster returns the name of the node's cluster and its UUID. The UUID is empty until the node has a claim: from its
// state directory, or by confirming a worker. Before that, the record of a cluster that ZooKeeper has lost may replace
// that of a new one.
func (n *Node) Cluster() (name, uuid string) {
	s := n.peek()
	if s.confirmed || s.resumed || s.beganAt != 0 {
		uuid = s.Cluster.UUID
	}
	return n.cfg.Cluster, uuid
}

// belongs reports whether the node has said to which cluster it belongs. It stays with that one.
func (n *Node) belongs() bool {
	_, uuid := n.Cluster()
	return uuid != ""
}

// Worker describes the node in one line of name=value pairs: worker ("none" if it has none),
// term, node identity, name and phase.
func (n *Node) Worker() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	number := "none"
	if n.tenure != nil {
		number = strconv.Itoa(n.tenure.Worker)
	}
	claim := n.view.Load().Claim
	return fmt.Sprintf("worker=%s term=%d node=%s name=%s state=%s", number, claim.Term, claim.Node,
		n.cfg.Labels.Name, n.phase())
}

// Stats returns the rows of STATS, each a name and a value. It leaves out values that are not known yet.
func (n *Node) Stats() (rows [][2]string) {
	s := n.Snapshot()
	add := func(name string, value any) { rows = append(rows, [2]string{name, fmt.Sprint(value)}) }
	add("version", n.Version())
	if s.Name != "" {
		add("name", s.Name)
	}
	if s.Node != "" {
		add("node", s.Node)
	}
	add("cluster", s.Cluster.Name)
	if s.Cluster.Layout != "" {
		add("layout", s.Cluster.Layout)
	}
	add("state", s.Phase)
	add("ready", s.Ready)
	if !s.Ready {
		add("reason", "-"+s.Code+" "+s.Reason)
		add("cause", s.Cause)
	}
	if len(s.Degraded) > 0 {
		add("degraded", strings.Join(s.Degraded, ","))
	}
	if s.Worker != nil {
		add("worker", *s.Worker)
		add("term", s.Term)
	}
	if s.LeaseLeftMs != nil {
		add("reserved_ms", *s.ReservedLeftMs)
		add("lease_left_ms", *s.LeaseLeftMs)
	}
	add("confirmed", s.Confirmed)
	add("served_seconds", s.ServedMs/1000)
	add("zookeeper_ok", s.ZooKeeper.OK)
	if s.ZooKeeper.HeartbeatAgeMs != nil {
		add("heartbeat_age_ms", *s.ZooKeeper.HeartbeatAgeMs)
		add("clock_offset_ms", int64(*s.Clock.OffsetMs))
		add("clock_uncertainty_ms", int64(*s.Clock.UncertaintyMs))
		add("clock_voters", s.Clock.Voters)
		add("clock_against", s.Clock.Against)
	}
	add("clock_unfollowed_leap_ms", s.Clock.UnfollowedLeapMs)
	add("clock_coasting_ms", s.Clock.CoastingMs)
	add("state_directory_ok", s.Disk.OK)
	add("started_ms", n.started)
	return rows
}
