package web

import (
	"slices"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// firstView is the first screen, in this order: whether this node serves, for how long
// without help, what is wrong, and what to do. Screen readers announce a change of Serves,
// Wrong, Cluster or ReadAt, so those must not change every second.
type firstView struct {
	Tone   string // good, warn or bad
	Word   string // for the title of the window
	Serves string
	Left   string // how long
	Aside  string // for how long it could serve without ZooKeeper
	Wrong  []health.Problem
	// Cluster has the problems of the rest of the cluster. ReadAt is the time at which the cluster was read from
	// ZooKeeper. It is empty unless that reading is old.
	Cluster []health.Problem
	ReadAt  string
}

// Well reports whether this node knows of no problem.
func (f firstView) Well() bool { return len(f.Wrong)+len(f.Cluster) == 0 }

// firstOf decides what the first screen says. It reads v.Status, v.Own, v.Dev, v.Stale
// and v.ReadAt, which must be set.
func firstOf(v pageData, c seen) firstView {
	f := firstView{Tone: "good", Word: "serving", Serves: "Serving IDs", Wrong: v.Status.Problems,
		Cluster: clusterWrong(v, c)}
	if v.Stale {
		f.ReadAt = v.ReadAt
	}
	if !f.Well() {
		f.Tone, f.Word = "warn", "serving, with problems"
	}
	switch {
	case !v.Status.Ready:
		f.Tone, f.Word, f.Serves = "bad", "not serving", "Not serving IDs"
		f.Left = "No time left: clients get no IDs from this node"
		switch {
		case v.Own.Cause == node.CauseDraining:
			f.Tone, f.Word, f.Serves = "warn", "draining", "Draining"
			f.Left = "Open connections get IDs until the node stops"
		case health.Starting(v.Own.Cause):
			f.Tone, f.Word, f.Serves, f.Left = "warn", "starting", "Starting", "The node starts serving by itself, "+
				"normally within seconds"
		}
		return f
	case v.Dev:
		f.Left = "No time limit"
		return f
	}
	left, ends, longer, limited := v.Own.limit()
	f.Left = "No time limit"
	switch {
	case limited:
		f.Left = words.Duration(left) + " left: the node stops serving at " + ends + " unless " + longer
	case ends != "":
		f.Aside = "If ZooKeeper fails now, this node serves for another " + words.Duration(left) + "."
	}
	return f
}

// limit returns for how long the worker can go on, in ms, and when that ends: by its reserved bound while it
// lacks its disk, else by its lease. longer says what would extend the time. If it lacks nothing, limited is
// false and left is the time it would have without ZooKeeper. ends is empty if there is no limit.
func (w ownView) limit() (left int64, ends, longer string, limited bool) {
	ms := w.LeaseLeftMs
	limited, longer = w.CutOff() || w.Disk.Limits, "it reaches ZooKeeper"
	if bound := w.ReservedLeftMs; w.Disk.Limits && bound != nil && (!w.CutOff() || ms == nil || *bound < *ms) {
		ms, longer = bound, "it can write its state directory again"
	}
	if ms == nil {
		return 0, "", "", false
	}
	left = max(0, *ms)
	return left, utc(w.NowMs+left) + " UTC", longer, limited
}

// clusterWrong returns the problems of the rest of the cluster. An unreadable cluster is one,
// unless this node has lost ZooKeeper: its own problems then have the cause.
func clusterWrong(v pageData, c seen) (out []health.Problem) {
	if !v.Own.CutOff() && (v.Stale || c.err != nil) {
		since := ""
		if v.ReadAt != "" {
			since = " since " + v.ReadAt + " UTC"
		}
		out = append(out, health.UnreadProblem(since))
	}
	for _, problem := range c.Summary.Problems {
		if !said(v.Own, problem) {
			out = append(out, problem)
		}
	}
	return out
}

// said reports whether a problem of the cluster is about w alone while w has problems itself. This process knows more
// about w than the cluster's record does.
func said(w ownView, problem health.Problem) bool {
	return w.Worker != nil && len(w.Problems()) > 0 && slices.Equal(problem.Workers, []int{*w.Worker})
}
