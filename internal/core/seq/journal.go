package seq

import (
	"encoding/json"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/timeguard"
)

// journal is the file that keeps what a node holds of its sequences, so that the next process of the node goes on with
// it, also after kill -9.
//
// The invariant (S30): a position is issued only if it is below the bound of its stock, and the file on the disk has
// only positions at or above the bound. So a process that ends at any moment has issued nothing that the file has.
// A bound is raised in the file first, and lowered in memory first.
type journal struct {
	dir   Dir
	woken chan struct{} // capacity 1: a sequence comes near its bound

	// count is that of the last write that succeeded. The state file repeats it (S31). read is its journalFile.Read.
	count atomic.Uint64
	read  atomic.Int64
	// raises: a record may have to be put above what the process before left (S35). Others must wait for that.
	raises atomic.Bool

	mu    sync.Mutex  // guards found, begun and node, never held during I/O
	found journalFile // as the process before left it
	begun bool        // found was taken over or dropped: see Issuer.resume
	node  string      // the identity of the node, "" before it has a worker

	// Only the goroutine that writes the file uses these. held is what it has, nil if that is not known. blank:
	// there is no file.
	held   []byte
	heldBy string
	blank  bool
	holds  int  // of how many sequences, last time
	failed bool // the last write
}

// journalFile is the content of the file.
type journalFile struct {
	// Count grows by one with each write.
	Count uint64 `json:"count"`
	// Node is the identity of the node in the cluster.
	Node string `json:"node"`
	// At is when the file was written, and Boot the boot of the machine. Read is when the node had last known all
	// changes of operators, in ns of AtMost, 0 for never.
	At   timeguard.Moment `json:"at"`
	Boot string           `json:"boot"`
	Read int64            `json:"read"`
	Held json.RawMessage  `json:"held"` // []held
}

// held is what the next process may issue of a sequence.
type held struct {
	Name string `json:"name"`
	// ID and Incarnation are those of the record when the last block was taken. Last is that block.
	ID          string            `json:"id"`
	Incarnation int64             `json:"incarnation"`
	Last        positions.Block   `json:"last"`
	Blocks      []positions.Block `json:"blocks"`
}

// newJournal returns the journal in a directory, with what the process before left there.
func newJournal(dir Dir) *journal {
	j := &journal{dir: dir, woken: make(chan struct{}, 1)}
	j.find()
	return j
}

// find takes over what the process before left in the directory.
func (j *journal) find() {
	data, err := readChecked(j.dir, journalName)
	if j.blank = errors.Is(err, fs.ErrNotExist); err == nil {
		j.load(data)
	}
}

// write replaces the file durably.
func (j *journal) write(data []byte) error { return j.dir.Replace(journalName, checked(data)) }

// remove removes the file durably.
func (j *journal) remove() error { return j.dir.Remove(journalName) }

// load takes over the content of the file. A file that cannot be read is as good as none.
func (j *journal) load(data []byte) {
	if json.Unmarshal(data, &j.found) != nil {
		j.found = journalFile{}
	}
	j.count.Store(j.found.Count)
	j.raises.Store(len(j.found.Held) > 0)
}

// wake makes the journal look at the sequences soon. It never blocks. A nil journal is none.
func (j *journal) wake() {
	if j == nil {
		return
	}
	select {
	case j.woken <- struct{}{}:
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

// resume goes on with what the process before held, when the node has resumed its worker (S31). Before that, nothing
// is known of what other processes did with a copy of the file.
func (i *Issuer) resume(cluster ClusterInfo) {
	j := i.journal
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.node != cluster.Self {
		j.node = cluster.Self
		j.wake() // the next process has this identity
	}
	if j.begun {
		return
	}
	j.begun = true
	found, before := j.found, cluster.Journal
	j.found = journalFile{}
	j.raises.Store(false) // until entries of it count
	j.count.Store(max(found.Count, before))
	var all []held
	switch {
	case found.Count == 0:
		return
	//mutant:s31-any-journal by TestJournalGoesOn -> case false:
	case !cluster.Resumed, found.Node != cluster.Self, found.Count < before:
		i.cfg.Log.Warn("dropped the values that an earlier process held: the journal is older than the state file, " +
			"or of another node")
		return
	case json.Unmarshal(found.Held, &all) != nil:
		return
	}
	if found.Read != 0 && found.Boot != "" && found.Boot == i.cfg.Boot { // so the hold began in the last process (S5)
		i.read.CompareAndSwap(0, i.cfg.Elapsed.From(found.At, true).Most-(found.At.Most-found.Read))
	}
	j.raises.Store(len(all) > 0)
	for _, h := range all {
		s := i.named(h.Name)
		i.trace.Step("resumes", "name", h.Name, "id", h.ID, "blocks", words(h.Blocks))
		s.mu.Lock()
		s.resume(h)
		s.mu.Unlock()
	}
}

// resume notes what an earlier process held of the sequence. It counts when the record is known.
func (s *series) resume(h held) {
	s.kept, s.journaled, s.stale = &h, &h, true
	if s.known != nil {
		s.restock()
	}
}

// restock gives the mode what an earlier process held, if that is of the present life of the name.
func (s *series) restock() {
	h := s.kept
	if h == nil {
		return
	}
	s.kept = nil
	//mutant:s32-another-life by TestJournalGoesOn -> if m := s.stocked(); m != nil {
	if m := s.stocked(); m != nil && s.known.ID == h.ID {
		m.restock(*h)
		s.highest = max(s.highest, h.Last.End)
	}
}

func (s *segment) restock(h held) {
	s.lastBlock, s.lastIncarnation = h.Last, h.Incarnation
	s.unread = true
	for _, b := range h.Blocks {
		s.stock.Add(b)
	}
	s.stock.SkipTo(s.known.From) // the state directory may know what an operator has raised since
}
