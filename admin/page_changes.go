package admin

import (
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/clusterview"
)

// change is a change of another node's worker between two readings of ZooKeeper.
type change struct {
	level   hclog.Level
	message string
	worker  clusterview.WorkerReport
}

// changesOf returns what has changed in the workers' states from before to after. It leaves out
// the workers of this process, whose own log says more.
func changesOf(before, after []clusterview.WorkerReport, own map[int]bool) (changes []change) {
	was := make(map[int]clusterview.WorkerReport, len(before))
	for _, w := range before {
		was[w.Worker] = w
	}
	for _, w := range after {
		old, known := was[w.Worker]
		if own[w.Worker] || known && old.State == w.State && old.Node == w.Node {
			continue
		}
		level, message := hclog.Info, ""
		switch {
		case w.State == clusterview.Live && known && old.Node == w.Node:
			message = "node is connected again"
		case w.State == clusterview.Live:
			message = "node acquired a worker"
		case w.State == clusterview.Disconnected:
			level, message = hclog.Warn, "node is disconnected from ZooKeeper"
		case w.State == clusterview.Stopped:
			message = "node stopped cleanly"
		case w.State == clusterview.RecordMissing:
			level, message = hclog.Warn, "ZooKeeper lost the record of a worker"
		case known && w.State == clusterview.Free && old.State != clusterview.Live:
			message = "lease of a worker expired, and the worker is free"
		case known && (old.State == clusterview.Live || old.State == clusterview.Disconnected || old.State == clusterview.Stopped):
			message = "worker was released"
		default:
			continue
		}
		changes = append(changes, change{level, message, w})
	}
	return changes
}

// noteChanges adds an event for each worker whose state has changed since the last reading. The
// first reading changes nothing. Readings that come anyway are enough: an event may be as
// late as the next one.
func (s *Server) noteChanges(before, after clusterview.Report) {
	if before.Cluster.UUID != after.Cluster.UUID {
		return // also the first reading
	}
	own := make(map[int]bool)
	for _, w := range s.cfg.Workers() {
		if w.Worker != nil {
			own[*w.Worker] = true
		}
	}
	for i, c := range changesOf(before.Workers, after.Workers, own) {
		if i == mostChanges {
			s.cfg.Events.Accept("cluster", hclog.Info, fmt.Sprintf("more than %d workers changed at once, see flaked status", mostChanges))
			return
		}
		s.cfg.Events.Accept("cluster", c.level, c.message, "worker", c.worker.Worker, "name", clusterview.Clean(c.worker.Name))
	}
}

// mostChanges is how many workers get an event at one reading. More would push the node's own
// events out.
const mostChanges = 20
