package node

import (
	"fmt"
	"strings"
)

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
