package web

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// pageData is the data of the page's common parts at one moment.
type pageData struct {
	Status Status
	Dev    bool
	First  firstView
	// ReadAt is the time at which the slots were last read, and ReadAgo how long ago that was. Both are empty if they
	// were never read. Stale means that they should have been read again since.
	ReadAt  string
	ReadAgo string
	Stale   bool
	// StoreError is the error that ZooKeeper's library returned, empty if there is none.
	StoreError string
	Own        ownView
	Load       loadView
	Past       pastView
	// Held counts the cluster's workers, "" if they were never read. Clocks compares their clocks.
	Held, Clocks string
	Nodes        []slotView
	MoreNodes    int
	// Sequences are the sequences of the table, and MoreSequences how many it leaves out.
	Sequences     []*health.SequenceReport
	MoreSequences int
	Events        []Event // newest first
	// ID is the ID that the reader asked about, and Decoded what it means. nil means that nobody asked.
	ID      string
	Decoded *decodedView
}

// ownView is a worker of this process.
type ownView struct {
	health.OwnWorker
	Beat  string
	Clock string
	Worst string // its clock against the clock that differs most, "" if not compared
	// LeaseShown is the time left, in ms. It is nil while the worker refuses, because a time
	// left would contradict the refusal. A lease that has expired is shown all the same.
	LeaseShown *int64
	// BoundShown is the time left until the reserved bound, in ms, if the worker serves and
	// its disk fails. It is nil while the bound is renewed.
	BoundShown *int64
}

// slotView is a worker of the cluster as the page shows it.
type slotView struct {
	health.WorkerReport
	health.Marks
	Own   bool
	Was   bool   // from a stale reading
	Clock string // "+1.2ms +/- 0.5ms fast"; empty if not known
	Page  string // URL of the status page of another node; empty if it has none
}

const (
	// shownNodes is the most rows of the table of workers.
	shownNodes = 32
	// staleAfter is the age from which the page marks a reading of the slots as old.
	staleAfter = 4 * time.Second
)

// look returns the data of the common parts. It does no I/O and does not wait.
func (s *Server) look(now time.Time) pageData {
	c, _ := s.slots.get(true)
	sequences := sequencesOf(s.cfg.Issuer.Report())
	status := s.statusWith(sequences)
	v := pageData{Status: status, Dev: s.cfg.About.Dev, Own: describeOwn(status.Node)}
	past, boot := s.past.all(), s.past.boot()
	v.Load = loadOf(past, s.sampleOf(boot, status.Node))
	v.Past = describePast(past, s.past.began, boot, now, v.Dev)
	if !c.at.IsZero() {
		v.ReadAt, v.ReadAgo = utc(c.at.UnixMilli()), words.Duration(now.Sub(c.at).Milliseconds())
		v.Stale = c.err != nil || now.Sub(c.at) > max(staleAfter, 2*c.every(true))
	}
	if v.StoreError = replies.OneLine(v.Own.ZooKeeper.Error); v.StoreError == "" && c.err != nil {
		v.StoreError = replies.OneLine(c.err.Error())
	}
	slots := make([]slotView, 0, len(c.Workers))
	for _, w := range c.Workers {
		slots = append(slots, describeSlot(w, v.Own, now.Sub(c.at), v.Stale))
	}
	v.First = firstOf(v, c)
	if !c.at.IsZero() {
		v.Held, v.Clocks = c.Summary.HeldLine(), c.ClocksLine()
	}
	v.Nodes, v.MoreNodes = mostInteresting(slots)
	v.Sequences, v.MoreSequences = firstSequences(sequences, shownSequences)
	v.Events = status.Events
	slices.Reverse(v.Events)
	v.Events = v.Events[:min(len(v.Events), 30)]
	return v
}

func describeOwn(w node.Snapshot) ownView {
	v := ownView{OwnWorker: health.OwnWorker{Snapshot: w}, Beat: "none yet", Clock: "not compared yet"}
	if age := w.ZooKeeper.HeartbeatAgeMs; age != nil {
		v.Beat = words.Duration(*age) + " ago"
	}
	if w.Clock.OffsetMs != nil {
		v.Clock = words.Offset(*w.Clock.OffsetMs, *w.Clock.UncertaintyMs)
		if v.HeartbeatLate() { // the offset is as old, as heartbeats measure it
			v.Clock += ", " + v.Beat
		}
		if w.Clock.WorstMs != nil && w.Clock.Voters > 1 {
			v.Worst = fmt.Sprintf("%s against the farthest of %d clocks",
				words.Offset(*w.Clock.WorstMs, *w.Clock.WorstUncertaintyMs), w.Clock.Voters)
		}
	}
	if w.Ready || w.LeaseLeftMs != nil && *w.LeaseLeftMs <= 0 {
		v.LeaseShown = w.LeaseLeftMs
	}
	if w.Ready && w.Disk.Limits {
		v.BoundShown = w.ReservedLeftMs
	}
	return v
}

// describeSlot returns the view of a slot that was read ago before now. It converts ages
// and times left to the present. stale means that the slot should have been read again
// since. For a worker of this process, own says whether it refuses: ZooKeeper gets that
// only with the next heartbeat.
func describeSlot(w health.WorkerReport, own ownView, ago time.Duration, stale bool) slotView {
	isOwn := own.Worker != nil && *own.Worker == w.Worker
	v := slotView{WorkerReport: w, Own: isOwn, Was: stale, Clock: w.OffsetText()}
	// The marks are for the moment of the reading. The time since then does not count: the node may have reported, and
	// only this process has not read it.
	if isOwn {
		v.Marks = w.Marks(&own.OwnWorker, stale)
	} else {
		v.Marks, v.Page = w.Marks(nil, stale), pageOf(w.Admin)
	}
	if w.ReportAgeMs != nil {
		v.ReportAgeMs = new(*w.ReportAgeMs + ago.Milliseconds())
	}
	switch {
	case v.Refusing:
		v.LeaseLeftMs = nil
	case isOwn && own.LeaseShown != nil:
		v.LeaseLeftMs = own.LeaseShown // the reading does not have what later heartbeats have added
	case w.LeaseLeftMs != nil:
		v.LeaseLeftMs = new(*w.LeaseLeftMs - ago.Milliseconds())
	}
	return v
}

// pageOf returns the URL of the status page at an admin address, as nodes record it: HOST:PORT or
// https://HOST:PORT. It returns "" for any other text.
func pageOf(address string) string {
	host, secure := strings.CutPrefix(address, "https://")
	if _, port, err := net.SplitHostPort(host); err != nil || port == "" || strings.ContainsAny(host, "/?#@ ") {
		return ""
	}
	if secure {
		return "https://" + host + "/"
	}
	return "http://" + host + "/"
}

// mostInteresting returns at most shownNodes workers that are not free, and how many more
// there are. Workers with problems come first, then those of this process, then live ones,
// then stopped ones.
func mostInteresting(slots []slotView) (shown []slotView, more int) {
	rank := func(w slotView) int {
		switch {
		case w.Trouble():
			return 0
		case w.Own:
			return 1
		case w.State == health.Live:
			return 2
		case w.State == health.Stopped:
			return 3
		}
		return 4
	}
	for _, w := range slots {
		if w.State != health.Free {
			shown = append(shown, w)
		}
	}
	slices.SortStableFunc(shown, func(a, b slotView) int { return rank(a) - rank(b) })
	more = max(0, len(shown)-shownNodes)
	return shown[:len(shown)-more], more
}
