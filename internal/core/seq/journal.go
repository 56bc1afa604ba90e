package seq

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// journal is the file that keeps what a node holds of its sequences, so that the next process of the node goes on with
// it, also after kill -9.
//
// The invariant (S30): a position is issued only if it is below the bound of its stock, and the file on the disk has
// only positions at or above the bound. So a process that ends at any moment has issued nothing that the file has.
// A bound is raised in the file first, and lowered in memory first.
//
// Until the node has a worker, the file stays as the process before left it, and found has its content. Then resume
// goes on with that or drops it, and saveJournal writes the file. If a write fails, saveJournal removes the file, and
// no bound counts.
type journal struct {
	log *entrylog.Log
	// woken and hurried have capacity 1: some sequences are due, and requests of one wait for the disk.
	woken, hurried chan struct{}

	// count is journalHead.Count of the last write that succeeded. The state file repeats it (S31). knewAllAt is
	// progress.knewAllAt as the file has it.
	count     atomic.Uint64
	knewAllAt atomic.Int64

	found journalFound

	mu      sync.Mutex // guards these, never held during I/O
	node    string     // the identity of the node, "" until resume has done with found
	changed []*series  // whose entry may have to change. Each is in it once: see series.journalChanged

	// Only the goroutine that writes the file uses these.
	writtenBy string // journalHead.Node as the file has it
	missing   bool   // there is no file
	failed    bool   // the last write
}

// journalName is the name of the journal in the state directory.
const journalName = "sequences.journal"

// journalHead is the entry of the file that each write renews. Its key is "".
type journalHead struct {
	// Count grows by one with each write.
	Count uint64 `json:"count"`
	// Node is the identity of the node in the cluster.
	Node string `json:"node"`
	// At is the time at which the file was written, and Boot the boot of the machine. KnewAllAt is that of progress,
	// nil for longAgoNs.
	At        timeguard.Moment `json:"at"`
	Boot      string           `json:"boot"`
	KnewAllAt *int64           `json:"read,omitempty"`
}

// journalFound is the content of the file: besides its head, an entry of held for each sequence, by its name.
type journalFound struct {
	journalHead
	held entrylog.Content
}

// held has the positions of a sequence that the next process may issue.
type held struct {
	// ID and Incarnation are those of the record when the last block was taken. Last is that block, without what was
	// given back of it: see held.below.
	ID          string            `json:"id"`
	Incarnation int64             `json:"incarnation"`
	Last        positions.Block   `json:"last"`
	Blocks      []positions.Block `json:"blocks"`
}

// newJournal returns the journal in a directory. It does no I/O: see find.
func newJournal(dir entrylog.Dir) *journal {
	j := &journal{
		log:   entrylog.New(dir, journalName),
		woken: make(chan struct{}, 1), hurried: make(chan struct{}, 1),
	}
	j.knewAllAt.Store(longAgoNs)
	return j
}

// wake makes the journal look at a sequence soon: nil for none. hurry: requests wait for that. It never blocks. On a
// nil journal it does nothing.
func (j *journal) wake(s *series, hurry bool) {
	if j == nil {
		return
	}
	if s != nil {
		j.add(s)
	}
	signal(j.woken)
	if hurry {
		signal(j.hurried)
	}
}

// add notes that the entry of a sequence may have to change.
func (j *journal) add(s *series) {
	if !s.journalChanged.Swap(true) {
		j.mu.Lock()
		j.changed = append(j.changed, s)
		j.mu.Unlock()
	}
}

// signal fills a channel with capacity 1.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// JournalCount returns the count of the journal, which the state file repeats.
func (i *Issuer) JournalCount() uint64 {
	if i.journal == nil {
		return 0
	}
	return i.journal.count.Load()
}

// planned is a bound that counts when the journal has been written.
type planned struct {
	s     *series
	m     *segment
	bound int64
}

// saveJournal lowers bounds in memory, writes the journal if it lacks something, and then raises bounds. again:
// saveJournal should be called again in a second. Only one goroutine may call it.
func (i *Issuer) saveJournal() (again bool) {
	j := i.journal
	knewAllAt := i.progress.Load().knewAllAt // first: a later change may drop what the plan has
	due, node := j.popChanged()
	if node == "" {
		return false
	}
	if j.log.IsBlank() {
		due = i.series.list()
	}
	changes, bounds, again := i.planBounds(due)
	err := i.writeJournal(changes, node, knewAllAt)
	failed := j.failed
	if j.failed = err != nil; err != nil {
		i.noteDirFailure(err)
		if !failed {
			i.cfg.Log.Warn("sequences: could not write the journal: a restart will skip the values that this node "+
				"holds",
				"error", err)
		}
		if err := j.remove(); err != nil { // as it is, it has positions that are about to be issued (S30)
			i.cfg.Log.Error("sequences: could not remove the journal either, so this node issues nothing more of "+
				"what it holds", "error", err)
			return true
		}
	}
	for _, p := range bounds {
		if err != nil { // the file is gone, so no later process finds what is issued now
			p.bound = math.MaxInt64
		}
		p.s.change(func() {
			if p.s.Issuing == p.m { // else the name has another life
				p.m.traceBound(p.bound)
				p.m.stock.SetBound(p.bound)
			}
		})
	}
	return again || err != nil
}

// dirFailure is a write of the journal or the witness file that failed at a time, ns of AtMost.
type dirFailure struct {
	err error
	at  int64
}

func (i *Issuer) noteDirFailure(err error) { i.dirFailure.Store(&dirFailure{err, i.now()}) }

// DirError returns why the next process of this node may not find in the directory what this one knows and holds, nil
// if it finds that. A write that failed counts for saveEvery: on a full disk the journal makes room for its next write,
// when it removes itself. Unlike the other methods of Issuer, DirError asks the file system.
func (i *Issuer) DirError() error {
	if i.journal == nil {
		return nil
	}
	err := i.journal.log.Check()
	if f := i.dirFailure.Load(); err == nil && f != nil && i.now()-f.at < int64(saveEvery) {
		err = f.err
	}
	return err
}

// keepsForRestart reports whether the next process finds the values that this one holds. Call it when keepJournal has
// ended.
func (i *Issuer) keepsForRestart() bool {
	return i.outlasts() && !i.journal.failed && i.journal.log.Check() == nil
}

// popChanged returns the sequences whose bounds may have to move, each once, and the identity of the node: "" if
// nothing must be written yet.
func (j *journal) popChanged() (due []*series, node string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.node == "" {
		return nil, ""
	}
	due, j.changed = j.changed, nil
	return due, j.node
}

// planBounds returns the entries that the journal must have of some sequences, and the bounds that count then. again:
// some must be looked at again in a second.
func (i *Issuer) planBounds(some []*series) (changes entrylog.Entries, bounds []planned, again bool) {
	now, minMargin := i.now(), leastMargin(i.journal.sequences())
	changes = make(entrylog.Entries, len(some))
	for _, s := range some {
		s.journalChanged.Store(false) // before anything is looked at: a change from now on adds it again
		s.Mu.Lock()
		h := s.kept
		if m := s.stocked(); m != nil && h == nil {
			bound, busy := m.planBound(now, minMargin)
			if again = again || busy; busy {
				i.journal.add(s)
			}
			h = m.held(bound)
			if bound != m.stock.Bound() || m.waitsForDisk() {
				//mutant:s30-before-the-disk by seqsim -> m.stock.SetBound(bound)
				bounds = append(bounds, planned{s, m, bound})
			}
		}
		changes[s.Name] = h.entry()
		s.Mu.Unlock()
	}
	return changes, bounds, again
}

// writeJournal writes the changes, unless the file has all that it needs. If the log is blank, changes must have all
// entries. Without ZooKeeper the next process counts the hold from knewAllAt, so that of the file is never much older.
func (i *Issuer) writeJournal(changes entrylog.Entries, node string, knewAllAt int64) error {
	j := i.journal
	if !j.log.Differs(changes) && (j.missing || !j.log.IsBlank() && node == j.writtenBy &&
		(j.sequences() == 0 || knewAllAt-j.knewAllAt.Load() < int64(saveEvery))) {
		return nil
	}
	f := journalHead{Count: j.count.Load() + 1, Node: node, At: i.cfg.Elapsed.Now(), Boot: i.cfg.Boot}
	if knewAllAt != longAgoNs {
		f.KnewAllAt = &knewAllAt
	}
	changes[""] = store.Marshal(f)
	j.missing = false
	if err := j.log.Write(changes); err != nil {
		return err
	}
	j.writtenBy = node
	j.count.Store(f.Count)
	j.knewAllAt.Store(knewAllAt)
	return nil
}

// sequences returns the number of those of which the file has an entry.
func (j *journal) sequences() int { return max(0, j.log.Len()-1) }

// remove removes the file durably.
func (j *journal) remove() error {
	err := j.log.Remove()
	j.missing = err == nil
	return err
}

// batchFor is the pause after a write of the journal, unless a request waits for the disk. Bounds that should move
// meanwhile share the next write.
const batchFor = 20 * time.Millisecond

// keepJournal writes the journal when a sequence needs it, until the context ends.
func (i *Issuer) keepJournal(ctx context.Context) {
	j := i.journal
	var second <-chan time.Time // when saveJournal asked to be called again. A call before does not put it off
	for ctx.Err() == nil {
		if i.saveJournal() && second == nil {
			second = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
		case <-j.hurried:
		case <-time.After(batchFor):
		}
		select {
		case <-ctx.Done():
		case <-j.woken:
		case <-second:
			second = nil
		}
	}
}

// entry returns the entry of the journal, nil if there is nothing to keep.
func (h *held) entry() any {
	if h == nil || len(h.Blocks) == 0 {
		return nil
	}
	return h
}

// held returns what the journal must have if this bound counts.
func (s *segment) held(bound int64) *held {
	return &held{s.Known.ID, s.lastIncarnation, s.lastBlock, s.stock.From(bound)}
}

// words returns blocks as one word.
func words(blocks []positions.Block) string {
	all := make([]string, len(blocks))
	for k, b := range blocks {
		all[k] = fmt.Sprintf("%d-%d", b.First, b.End)
	}
	return strings.Join(all, ",")
}
