package admin

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/node"
)

// view is the data of the page's common parts at one moment.
type view struct {
	Status Status
	Ready  bool
	Reason string
	Dev    bool
	First  firstView
	// ReadAt is when the slots were last read, and ReadAgo how long ago. Both are empty if
	// they never were. Stale means that they should have been read again since.
	ReadAt  string
	ReadAgo string
	Stale   bool
	// StoreError is the error that ZooKeeper's library returned, empty if there is none.
	StoreError string
	Own        []ownView
	Load       loadView
	Map        mapView
	Clocks     chartView
	Nodes      []slotView
	MoreNodes  int
	// Sequences are the sequences of the table, and MoreSequences how many it leaves out.
	Sequences     []seqView
	MoreSequences int
	Events        []Event // newest first
}

// ownView is a worker of this process.
type ownView struct {
	clusterview.OwnWorker
	Beat  string
	Clock string
	// LeaseShown is the time left, in ms. It is nil while the worker refuses, because a time
	// left would contradict the refusal. A lease that has expired is shown all the same.
	LeaseShown *int64
	// BoundShown is the time left until the reserved bound, in ms, if the worker serves and
	// its disk fails. It is nil while the bound is renewed.
	BoundShown *int64
}

// slotView is a worker of the cluster as the page shows it.
type slotView struct {
	clusterview.WorkerReport
	Own      bool
	Off      bool // its clock
	Late     bool // it has missed a heartbeat
	Refusing bool
	Was      bool   // from a stale reading
	Clock    string // "1.2ms ± 0.5ms fast"; empty if not known
	Page     string // URL of the status page of another node; empty if it has none
	Means    string // its state in words
}

// Trouble reports whether an operator should look at the worker.
func (v slotView) Trouble() bool {
	return v.State == clusterview.Disconnected || v.State == clusterview.RecordMissing || v.Off || v.Late || v.Refusing
}

// Marks returns words for a worker of this process and for problems, separated by commas,
// in the order of the legend.
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

// mapView is the map of workers, one cell for each.
type mapView struct {
	Cells []cellView
	Large bool // at most largeMap cells, with numbers
	// Beyond is how many workers have no cell. Rest is how many have none on a small screen.
	Beyond, Rest int
	Legend       []legendView
	Total        int
	Held         int
	Known        bool
	Stale        bool
}

// same reports whether both maps would be rendered alike.
func (m mapView) same(other mapView) bool {
	return slices.Equal(m.Cells, other.Cells) && slices.Equal(m.Legend, other.Legend) && m.Total == other.Total && m.Known == other.Known && m.Stale == other.Stale
}

type cellView struct {
	Number int
	State  string
	Name   string // empty if the worker was never held
	Class  string
	Marks  string
	Held   bool // at some time, so there is a record to show
}

type legendView struct {
	State, Means string
	N            int
}

// stateMeans words the states.
var stateMeans = map[string]string{
	clusterview.Live:          "its node is connected to ZooKeeper",
	clusterview.Disconnected:  "its node is disconnected from ZooKeeper, and may serve until its lease expires",
	clusterview.Stopped:       "its node stopped cleanly, and may come back until its lease expires",
	clusterview.Releasing:     "released, and free when its lease has expired",
	clusterview.RecordMissing: "ZooKeeper has lost its record",
	clusterview.Free:          "any node may acquire it",
}

const (
	// largeMap is the most workers whose cells have room for numbers. A small screen hides
	// the cells from largeMap on that follow the last worker that was ever held.
	largeMap = 128
	// mapCells limits the map: workers below it have cells, and of the others the first
	// mapCells that were ever held.
	mapCells = 2048
	// shownNodes is the most rows of the table of workers.
	shownNodes = 32
	// staleAfter is how old a reading of the slots may be while a page is open.
	staleAfter = 4 * time.Second
)

// look returns the data of the common parts. It does no I/O and does not wait.
func (s *Server) look(now time.Time) view {
	c, _ := s.slots.get()
	samples, past := s.pages.past.all()
	sequences := s.sequences()
	status := s.statusWith(sequences)
	v := view{Status: status, Ready: status.Ready, Reason: status.Reason, Dev: s.cfg.About.Dev, Load: describeLoad(samples, now)}
	for _, w := range status.Workers {
		v.Own = append(v.Own, describeOwn(w))
	}
	if !c.at.IsZero() {
		v.ReadAt, v.ReadAgo = utc(c.at.UnixMilli()), clusterview.Brief(now.Sub(c.at).Milliseconds())
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
	v.Sequences, v.MoreSequences = firstSequences(sequences, shownSequences)
	v.Events = status.Events
	slices.Reverse(v.Events)
	v.Events = v.Events[:min(len(v.Events), 30)]
	return v
}

// storeError returns the error of a heartbeat, or else err, which is that of reading the
// cluster.
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
	v := ownView{OwnWorker: clusterview.OwnWorker{Snapshot: w}, Beat: "none yet", Clock: "not compared yet"}
	if age := w.ZooKeeper.HeartbeatAgeMs; age != nil {
		v.Beat = clusterview.Brief(*age) + " ago"
	}
	if w.Clock.OffsetMs != nil {
		v.Clock = clockWords(*w.Clock.OffsetMs, *w.Clock.UncertaintyMs)
		if v.HeartbeatLate() { // the offset is as old, as heartbeats measure it
			v.Clock += ", " + v.Beat
		}
	}
	if w.Ready || w.LeaseLeftMs != nil && *w.LeaseLeftMs <= 0 {
		v.LeaseShown = w.LeaseLeftMs
	}
	if w.Ready && !w.Disk.OK {
		v.BoundShown = w.ReservedLeftMs
	}
	return v
}

// describeSlot returns the view of a slot that was read ago before now. It converts ages
// and times left to the present. stale means that the slot should have been read again
// since. For a worker of this process, own says whether it refuses: ZooKeeper gets that
// only with the next heartbeat.
func describeSlot(w clusterview.WorkerReport, own map[int]ownView, ago time.Duration, stale bool) slotView {
	self, isOwn := own[w.Worker]
	v := slotView{WorkerReport: w, Own: isOwn, Was: stale, Off: w.ClockOff(), Means: stateMeans[w.State]}
	if ms, uncertain, known := w.Offset(); known {
		v.Clock = clockWords(ms, uncertain)
	}
	if !isOwn {
		v.Page = pageOf(w.Admin)
	}
	if w.State == clusterview.Live {
		if _, v.Refusing = w.Refuses(); isOwn {
			v.Refusing, v.Off = !self.Ready, v.Off || self.ClockOff()
		}
		// ReportAgeMs is the age at the reading. The time since then does not count: the
		// node may have reported, and only this process has not read it.
		v.Late = !stale && w.ReportAgeMs != nil && clusterview.HeartbeatLate(*w.ReportAgeMs, w.HeartbeatMs)
	}
	if w.ReportAgeMs != nil {
		v.ReportAgeMs = new(*w.ReportAgeMs + ago.Milliseconds())
	}
	if v.Refusing {
		v.LeaseLeftMs = nil
	} else if w.LeaseLeftMs != nil {
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

// sparse reports whether the map of workers is mostly empty cells. The page then folds it.
func sparse(s clusterview.Summary) bool { return s.Slots > largeMap && s.Used*10 < s.Slots }

func describeMap(c seen, slots []slotView, stale bool) mapView {
	m := mapView{Stale: stale, Total: c.Summary.Slots, Held: c.Summary.Held, Known: !c.at.IsZero(), Large: c.Summary.Slots <= largeMap}
	counts := c.Summary.ByState()
	for _, state := range clusterview.States() {
		m.Legend = append(m.Legend, legendView{state, stateMeans[state], counts[state]})
	}
	next := 0
	for n := range min(c.Summary.Slots, mapCells) {
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
	m.Beyond = max(0, c.Summary.Slots-len(m.Cells))
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
		case w.State == clusterview.Live:
			return 2
		case w.State == clusterview.Stopped:
			return 3
		}
		return 4
	}
	var by [5][]int
	for i, w := range slots {
		if w.State != clusterview.Free {
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

// detailView is the worker that a reader asked for.
type detailView struct {
	Asked  string
	Valid  bool
	Found  bool
	Number int
	Total  int
	Slot   slotView
	// ReadAt is when the slot was read, and ReadAgo how long ago. Both are empty unless the
	// reading is stale.
	ReadAt, ReadAgo string
}

// Last returns the largest worker that the layout has.
func (v detailView) Last() int { return v.Total - 1 }
