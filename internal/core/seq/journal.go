package seq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"sync"
	"sync/atomic"
	"time"

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
type journal struct {
	dir   Dir
	woken chan struct{} // capacity 1: a sequence comes near its bound

	// count is that of the last write that succeeded. The state file repeats it (S31). read is
	// progress.knewAllAt as the file has it.
	count atomic.Uint64
	read  atomic.Int64
	// comparing: a record may have to be put above what the process before left (S35). Others must wait for that.
	comparing atomic.Bool

	mu    sync.Mutex  // guards found, begun and node, never held during I/O
	found journalFile // as the process before left it
	begun bool        // found was taken over or dropped: see Rounds.resume
	node  string      // the identity of the node, "" before it has a worker

	// Only the goroutine that writes the file uses these. written is the journalFile.Held that it has, nil if that is not
	// known, and writtenBy its Node. blank: there is no file.
	written   []byte
	writtenBy string
	blank     bool
	sequences int  // that it had anything of, last time
	failed    bool // the last write
}

// journalFile is the content of the file.
type journalFile struct {
	// Count grows by one with each write.
	Count uint64 `json:"count"`
	// Node is the identity of the node in the cluster.
	Node string `json:"node"`
	// At is when the file was written, and Boot the boot of the machine. Read is progress.knewAllAt, nil
	// if that is longAgoNs.
	At   timeguard.Moment `json:"at"`
	Boot string           `json:"boot"`
	Read *int64           `json:"read,omitempty"`
	Held json.RawMessage  `json:"held"` // []held
}

// held is what the next process may issue of a sequence.
type held struct {
	Name string `json:"name"`
	// ID and Incarnation are those of the record when the last block was taken. Last is that block, without what was
	// given back of it: see below.
	ID          string            `json:"id"`
	Incarnation int64             `json:"incarnation"`
	Last        positions.Block   `json:"last"`
	Blocks      []positions.Block `json:"blocks"`
}

// newJournal returns the journal in a directory. It does no I/O: see find.
func newJournal(dir Dir) *journal {
	j := &journal{dir: dir, woken: make(chan struct{}, 1)}
	j.read.Store(longAgoNs)
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
	j.comparing.Store(len(j.found.Held) > 0)
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
// is known of what other processes did with a copy of the file. resume reports whether it dropped what the journal had.
func (rs *Rounds) resume(cluster ClusterInfo) (dropped bool) {
	j := rs.issuer.journal
	if j == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.node != cluster.Self {
		j.node = cluster.Self
		j.wake() // the next process has this identity
	}
	if j.begun {
		return false
	}
	j.begun = true
	found, before := j.found, cluster.Journal
	j.found = journalFile{}
	j.comparing.Store(false) // until entries of it count
	j.count.Store(max(found.Count, before))
	var all []held
	switch {
	case found.Count == 0:
		return false
	//mutant:s31-any-journal by TestJournalGoesOn -> case false:
	case !cluster.Resumed, found.Node != cluster.Self, found.Count < before:
		return true
	case json.Unmarshal(found.Held, &all) != nil:
		return false
	}
	sameBoot := found.Boot != "" && found.Boot == rs.issuer.cfg.Boot
	if rs.issuer.progress.Load().knewAllAt == longAgoNs && found.Read != nil && sameBoot {
		// so the hold began in the last process (S5)
		at := rs.issuer.cfg.Elapsed.From(found.At, true).Most - (found.At.Most - *found.Read)
		rs.issuer.publish(func(p *progress) { p.knewAllAt = at })
	}
	j.comparing.Store(len(all) > 0)
	for _, h := range all {
		s := rs.issuer.series.named(h.Name)
		rs.issuer.trace.Step("resumes", "name", h.Name, "id", h.ID, "blocks", words(h.Blocks))
		s.Mu.Lock()
		s.resume(h)
		s.Mu.Unlock()
	}
	return false
}

// resume notes what an earlier process held of the sequence. It counts when the record is known.
func (s *series) resume(h held) {
	s.kept, s.journaled, s.Stale = &h, &h, true
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

// leastMargin is the number of positions below a bound for a sequence that is hardly used: so many are lost at kill -9. A
// node that holds blocks of many sequences writes its journal less often for each of them.
func leastMargin(sequences int) int64 { return 2 + int64(sequences)/1000 }

// planned is a bound that counts when the journal has been written.
type planned struct {
	s     *series
	m     *segment
	bound int64
}

// saveJournal writes the journal if a bound must move. again: it should be called again in a second. Only one goroutine
// may call it.
func (i *Issuer) saveJournal() (again bool) {
	j := i.journal
	j.mu.Lock()
	begun, node := j.begun, j.node
	j.mu.Unlock()
	if !begun || node == "" {
		return false
	}
	read := i.progress.Load().knewAllAt // first: a later change may drop what the plan has
	all, bounds, again := i.planBounds()
	err := i.writeJournal(all, node, read)
	failed := j.failed
	if j.failed = err != nil; err != nil {
		if again = true; !failed {
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
			if p.s.mode == p.m { // else the name has another life
				p.m.traceBound(p.bound)
				p.m.stock.SetBound(p.bound)
			}
		})
	}
	return again
}

// planBounds returns what the journal must have, and the bounds that count then.
func (i *Issuer) planBounds() (all []held, bounds []planned, again bool) {
	now, few := i.now(), leastMargin(i.journal.sequences)
	for _, s := range i.series.list() {
		s.Mu.Lock()
		if s.kept != nil {
			all = append(all, *s.kept)
		} else if m := s.stocked(); m != nil {
			bound, busy := m.planBound(now, few)
			again = again || busy
			if h, ok := m.held(bound); ok {
				all = append(all, h)
			}
			if bound != m.stock.Bound() || m.waitsForDisk() {
				//mutant:s30-before-the-disk by seqsim -> m.stock.SetBound(bound)
				bounds = append(bounds, planned{s, m, bound})
			}
		}
		s.Mu.Unlock()
	}
	i.journal.sequences = len(all)
	return all, bounds, again
}

// writeJournal writes the file, unless it has the same already. read is when the node last knew all changes: without
// ZooKeeper the hold counts from then, so that is never much older.
func (i *Issuer) writeJournal(all []held, node string, read int64) error {
	j := i.journal
	what := store.Marshal(all)
	unchanged := bytes.Equal(what, j.written) && node == j.writtenBy &&
		(len(all) == 0 || read-j.read.Load() < int64(saveEvery))
	if unchanged || len(all) == 0 && j.blank {
		return nil
	}
	j.written, j.blank = nil, false
	f := journalFile{
		Count: j.count.Load() + 1, Node: node, At: i.cfg.Elapsed.Now(), Boot: i.cfg.Boot, Held: what,
	}
	if read != longAgoNs {
		f.Read = &read
	}
	if err := j.write(store.Marshal(f)); err != nil {
		return err
	}
	j.written, j.writtenBy = what, node
	j.count.Store(f.Count)
	j.read.Store(read)
	return nil
}

// keepJournal writes the journal when a sequence needs it, until the context ends.
func (i *Issuer) keepJournal(ctx context.Context) {
	var second <-chan time.Time // when saveJournal asked to be called again. A call before does not put it off
	for ctx.Err() == nil {
		if i.saveJournal() && second == nil {
			second = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
		case <-i.journal.woken:
		case <-second:
			second = nil
		}
	}
}

// planBound returns the bound that should count next, and lowers the present one if it should be lower. It lies above
// what the requests that wait need, and what the node issues in a second, or few. A lower bound counts at once. busy:
// the bound should go down when the sequence has been quiet for a second.
func (s *segment) planBound(now, few int64) (bound int64, busy bool) {
	second := s.pace.second(s.Issued, now)
	margin := max(few, second+second/4)
	s.wakeBelow = margin / 5
	bound = s.stock.Bound()
	need := s.needs().all
	if next := s.boundFor(need, margin); next > bound && (need > 0 || s.stock.Free() <= s.wakeBelow) {
		bound = next
	} else if s.stock.Free() > margin+margin/2 && need == 0 {
		bound = s.stock.After(margin)
		s.traceBound(bound)
		//mutant:s30-lowered-on-the-disk-first by seqsim ->
		s.stock.SetBound(bound)
	}
	return bound, margin > few
}

// boundFor returns a bound below which requests for need positions find theirs, and margin more.
func (s *segment) boundFor(need, margin int64) int64 {
	bound := s.stock.After(need + margin)
	for _, r := range s.Waiting {
		if r.Whole { // the blocks before may be too short
			bound = max(bound, s.stock.AfterWhole(r.N))
		}
	}
	return bound
}

// held returns what the journal must have if this bound counts. ok is false if that is nothing.
func (s *segment) held(bound int64) (h held, ok bool) {
	h = held{s.Name, s.known.ID, s.lastIncarnation, s.lastBlock, s.stock.From(bound)}
	return h, len(h.Blocks) > 0
}

// waitsForDisk reports whether requests wait that the stock could answer, but for its bound.
func (s *segment) waitsForDisk() bool { return len(s.Waiting) > 0 && !s.needs().lacking }

// pace counts what a sequence issues in a second.
type pace struct {
	beganAt, issued int64 // when the present second began, ns of AtMost, and what was issued before
	last            int64 // what was issued in a second before
}

// second returns what was issued in the last second, or in the present one if that is more.
func (p *pace) second(issued, now int64) int64 {
	n := issued - p.issued
	if passed := now - p.beganAt; passed >= int64(time.Second) {
		p.last = int64(float64(n) * float64(time.Second) / float64(passed))
		p.beganAt, p.issued = now, issued
		return p.last
	}
	return max(n, p.last)
}
