package admin

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/node"
)

// view is what the page's parts are made of: what is known at one moment.
type view struct {
	Status  Status
	Ready   bool
	Reason  string
	Dev     bool
	First   firstView
	ReadAt  string // the slots, and how long ago; empty: never
	ReadAgo string
	Stale   bool
	// StoreError is why ZooKeeper does not answer, as the library says it.
	StoreError string
	Own        []ownView
	Load       loadView
	Map        mapView
	Clocks     chartView
	Nodes      []slotView
	MoreNodes  int
	Events     []Event // newest first
}

// ownView is one of this process's workers.
type ownView struct {
	node.Snapshot
	Beat     string
	BeatLate bool
	Clock    string
	ClockOff bool
	// LeaseShown and BoundShown are nil while the worker refuses: time left would
	// contradict that. A lease that is over is shown.
	LeaseShown, BoundShown *int64
}

// slotView is a worker of the cluster for people.
type slotView struct {
	Slot
	Own      bool
	Off      bool // its clock
	Late     bool // it has missed a heartbeat
	Refusing bool
	Was      bool   // so at the last reading, and not known now
	Clock    string // "1.2ms ± 0.5ms fast"; empty if not known
	Means    string // its state in words
}

// Trouble tells that somebody should look at it.
func (v slotView) Trouble() bool {
	return v.State == "detached" || v.State == "lost" || v.Off || v.Late || v.Refusing
}

// Marks are the words for what is not well, in the order of the legend.
func (v slotView) Marks() string {
	var marks []string
	for _, m := range []struct {
		is   bool
		word string
	}{{v.Own, "this node"}, {v.Refusing, "refuses"}, {v.Off, "clock off"}, {v.Late, "overdue"}} {
		if m.is {
			marks = append(marks, m.word)
		}
	}
	return strings.Join(marks, ", ")
}

// mapView is a cell for each worker, in rows of any length.
type mapView struct {
	Cells []cellView
	Large bool // few of them: there is room for numbers
	// Beyond is how many workers have no cell as nobody ever held them, and Rest
	// how many have none on a small screen.
	Beyond, Rest int
	Legend       []legendView
	Total        int
	Held         int
	Known        bool
	Stale        bool
}

// same tells that it would look alike.
func (m mapView) same(other mapView) bool {
	return slices.Equal(m.Cells, other.Cells) && slices.Equal(m.Legend, other.Legend) && m.Total == other.Total && m.Known == other.Known && m.Stale == other.Stale
}

type cellView struct {
	Number int
	State  string
	Name   string // empty for one that nobody ever held
	Class  string
	Marks  string
	Held   bool // by somebody at some time: there is something to say
}

type legendView struct {
	State, Means string
	N            int
}

// states are those of `flaked status`, in its order.
var states = []struct{ name, means string }{
	{"live", "its node is connected to ZooKeeper"},
	{"detached", "its node is not, and may still serve until its lease ends"},
	{"stopped", "its node stopped cleanly, and may come back until its lease ends"},
	{"cooling", "it was given back, and is free once its lease has ended"},
	{"lost", "ZooKeeper lost its record"},
	{"free", "anybody may take it"},
}

const (
	// largeMap is up to how many cells show their numbers, and mapCells up to
	// how many workers those are shown that nobody ever held.
	largeMap = 128
	mapCells = 2048
	// shownNodes is how many workers the table has.
	shownNodes = 32
	// offMs is how far off a clock is worth saying, as in `flaked status`.
	offMs = 500
	// overdueMs is how late a heartbeat may be.
	overdueMs = 500
	// staleAfter is how old a reading may be of slots that are being watched.
	staleAfter = 4 * time.Second
)

// look gathers it all. It waits for nobody.
func (s *Server) look(now time.Time) view {
	c, _ := s.slots.get()
	samples, past := s.pages.past.all()
	status := s.Status()
	v := view{Status: status, Ready: status.Ready, Reason: status.Reason, Dev: s.cfg.About.Dev, Load: describeLoad(samples, now)}
	for _, w := range status.Workers {
		v.Own = append(v.Own, describeOwn(w))
	}
	if !c.at.IsZero() {
		v.ReadAt, v.ReadAgo = utc(c.at.UnixMilli()), brief(now.Sub(c.at).Milliseconds())
		v.Stale = c.err != nil || s.slots.overdue()
	}
	v.StoreError = storeError(v.Own, c.err)
	slots := make([]slotView, 0, len(c.Workers))
	own := ownWorkers(v.Own)
	for _, w := range c.Workers {
		slots = append(slots, describeSlot(w, own, now.Sub(c.at), v.Stale))
	}
	v.First = firstOf(v, c, slots)
	v.Map = describeMap(c, slots, v.Stale)
	v.Clocks = clockChart(past, slots, now)
	v.Nodes, v.MoreNodes = mostInteresting(slots)
	v.Events = status.Events
	slices.Reverse(v.Events)
	v.Events = v.Events[:min(len(v.Events), 30)]
	return v
}

// storeError returns the error of a heartbeat, or else that of reading the cluster.
func storeError(own []ownView, err error) string {
	for _, w := range own {
		if w.ZooKeeper.Error != "" {
			return oneLine(w.ZooKeeper.Error)
		}
	}
	if err != nil {
		return oneLine(err.Error())
	}
	return ""
}

// ownWorkers returns the workers that this process holds, by number.
func ownWorkers(views []ownView) map[int]ownView {
	own := map[int]ownView{}
	for _, w := range views {
		if w.Worker != nil {
			own[*w.Worker] = w
		}
	}
	return own
}

func describeOwn(w node.Snapshot) ownView {
	v := ownView{Snapshot: w, Beat: "none yet", Clock: "not compared yet"}
	if age := w.ZooKeeper.HeartbeatAgeMs; age != nil {
		v.Beat = brief(*age) + " ago"
		v.BeatLate = *age > w.ZooKeeper.HeartbeatMs+overdueMs
	}
	if w.Clock.OffsetMs != nil {
		v.Clock = clockWords(*w.Clock.OffsetMs, *w.Clock.ErrorMs)
		if v.BeatLate { // clocks are compared at a heartbeat, so this one is as old
			v.Clock += ", " + v.Beat
		}
	}
	// That it differs from another node's alone is not to be held against it.
	v.ClockOff = w.Clock.Wrong || w.Clock.BehindMs > 0 || w.Clock.UnfollowedLeapMs > 0 ||
		w.Clock.OffsetMs != nil && math.Abs(*w.Clock.OffsetMs)-*w.Clock.ErrorMs > offMs
	if w.Ready || w.LeaseLeftMs != nil && *w.LeaseLeftMs <= 0 {
		v.LeaseShown = w.LeaseLeftMs
	}
	if w.Ready {
		v.BoundShown = w.ReservedLeftMs
	}
	return v
}

// describeSlot shows a slot that was read some time ago: ages are those of now.
// stale: it should have been read again. Whether a worker of this process refuses
// is known from the process itself, before ZooKeeper has it.
func describeSlot(w Slot, own map[int]ownView, ago time.Duration, stale bool) slotView {
	self, isOwn := own[w.Worker]
	v := slotView{Slot: w, Own: isOwn, Was: stale}
	if w.OffsetMs != nil {
		uncertain := 0.0
		if w.ErrorMs != nil {
			uncertain = *w.ErrorMs
		}
		v.Clock = clockWords(*w.OffsetMs, uncertain)
		v.Off = math.Abs(*w.OffsetMs)-uncertain > offMs
	}
	if w.State == "live" {
		v.Refusing = w.Phase == string(node.Refusing)
		if isOwn {
			v.Refusing, v.Off = !self.Ready, v.Off || self.ClockOff
		}
		// By its age when it was read: a node is not late because nobody looks.
		v.Late = !stale && w.ReportAgeMs != nil && w.HeartbeatMs > 0 && *w.ReportAgeMs > w.HeartbeatMs+overdueMs
	}
	if w.ReportAgeMs != nil {
		v.ReportAgeMs = new(*w.ReportAgeMs + ago.Milliseconds())
	}
	if v.Refusing {
		v.LeaseLeftMs = nil
	} else if w.LeaseLeftMs != nil {
		v.LeaseLeftMs = new(*w.LeaseLeftMs - ago.Milliseconds())
	}
	for _, state := range states {
		if state.name == w.State {
			v.Means = state.means
		}
	}
	return v
}

func describeMap(c seen, slots []slotView, stale bool) mapView {
	m := mapView{Stale: stale, Total: c.Total, Known: !c.at.IsZero(), Large: c.Total <= largeMap}
	for _, state := range states {
		m.Legend = append(m.Legend, legendView{state.name, state.means, c.ByState[state.name]})
	}
	m.Held = c.ByState["live"] + c.ByState["detached"] + c.ByState["stopped"]
	next := 0
	for n := range min(c.Total, mapCells) {
		if next < len(slots) && slots[next].Worker == n {
			m.Cells = append(m.Cells, describeCell(slots[next]))
			next++
			continue
		}
		cell := cellView{Number: n, State: "free", Class: "free"}
		if next == len(slots) && n >= largeMap {
			cell.Class += " rest"
			m.Rest++
		}
		m.Cells = append(m.Cells, cell)
	}
	for _, w := range slots[next:min(len(slots), next+mapCells)] {
		m.Cells = append(m.Cells, describeCell(w))
	}
	m.Beyond = max(0, c.Total-len(m.Cells))
	m.Rest += m.Beyond
	return m
}

func describeCell(w slotView) cellView {
	cell := cellView{Number: w.Worker, State: w.State, Name: w.Name, Class: w.State, Marks: w.Marks(), Held: true}
	for _, m := range []struct {
		is   bool
		word string
	}{{w.Own, "own"}, {w.Off || w.Refusing, "off"}, {w.Late, "late"}} {
		if m.is {
			cell.Class += " " + m.word
		}
	}
	return cell
}

// mostInteresting are those with troubles first, then this process's own, then
// those that are held.
func mostInteresting(slots []slotView) (shown []slotView, more int) {
	rank := func(w slotView) int {
		switch {
		case w.Trouble():
			return 0
		case w.Own:
			return 1
		case w.State == "live":
			return 2
		case w.State == "stopped":
			return 3
		}
		return 4
	}
	var by [5][]int
	for i, w := range slots {
		if w.State != "free" {
			by[rank(w)] = append(by[rank(w)], i)
			more++
		}
	}
	for _, i := range slices.Concat(by[:]...) {
		if len(shown) == shownNodes {
			break
		}
		shown = append(shown, slots[i])
	}
	return shown, more - len(shown)
}

// detailView is one worker, as asked for.
type detailView struct {
	Asked  string
	Valid  bool
	Found  bool
	Number int
	Total  int
	Slot   slotView
	// ReadAt and ReadAgo say when it was read where that is not now.
	ReadAt, ReadAgo string
}
