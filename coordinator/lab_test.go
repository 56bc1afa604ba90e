package coordinator

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// The protocol tests share the lab in this file. A lab is a cluster in memory, and the test moves its clock. A member
// is a node of it. Around its Coordinator it has the least of what the node package has: a disk that survives a crash,
// bounds and tenures.

const (
	labStart   = 1_700_000_000_000 // the clock's start, Unix ms
	labW       = 24 * time.Hour
	labConfirm = 10 * time.Second
	labLease   = time.Minute
	labReserve = 3 * time.Second
)

func millis(d time.Duration) int64 { return d.Milliseconds() }

// lab is a cluster in memory, with its nodes and with the slot records that observe has seen. Times are Unix
// milliseconds.
type lab struct {
	testing.TB
	*memcluster.Cluster
	admin *memzk.Session
	now   int64 // true time
	cl    Cluster
	nodes []*member
	gone  []*memzk.Session // of crashed processes
	// Copies of the data, which a test puts back.
	empty, copied *memzk.Snapshot

	seen   map[string]Slot // by path: the record seen last
	zxid   map[string]int64
	looked int64 // the zxid at the last observe
}

func newLab(t testing.TB, slots int) *lab {
	t.Helper()
	l := &lab{TB: t, now: labStart}
	l.Cluster = memcluster.New(func() int64 { return l.now * 1e6 })
	l.admin = l.Mem.Session()
	l.forget()
	l.cl = Cluster{UUID: "cluster-1", Layout: "test", Slots: slots, LeaseMs: millis(labW),
		ConfirmMs: millis(labConfirm)}
	l.init(l.cl)
	return l
}

func (l *lab) init(cl Cluster) {
	l.Helper()
	found, err := CreateCluster(l.Context(), l.admin, cl, l.now)
	if err != nil || found.UUID != cl.UUID {
		l.Fatalf("made %+v, %v", found, err)
	}
}

// confirmIn recreates the cluster's record with a confirming time of d.
func (l *lab) confirmIn(d time.Duration) { l.anew(func(cl *Cluster) { cl.ConfirmMs = millis(d) }) }

// leases recreates the cluster's record with a longest lease of d. A slot stays with its holder for the grace time
// after the lease bound: a twelfth of d, at most 5 s.
func (l *lab) leases(d time.Duration) { l.anew(func(cl *Cluster) { cl.LeaseMs = millis(d) }) }

func (l *lab) anew(change func(*Cluster)) {
	l.Helper()
	l.remove(clusterPath)
	change(&l.cl)
	l.init(l.cl)
}

// forget clears what observe has seen. A test calls it after the server has lost data, because bounds may be lower
// then.
func (l *lab) forget() {
	l.seen, l.zxid, l.looked = make(map[string]Slot), make(map[string]int64), -1
}

// observe fails the test if the term of a slot has gone down since it last looked, or if a lease bound has gone down
// and its holder has not released the slot.
func (l *lab) observe() {
	latest := l.Mem.Zxid()
	if latest == l.looked {
		return
	}
	l.looked = latest
	for w := range l.cl.Slots {
		p := SlotPath(w)
		data, stat, err := l.Mem.Peek(p)
		if err != nil || l.zxid[p] == stat.Mzxid {
			continue
		}
		was, known := l.seen[p]
		s := parseSlot(data)
		// A stand-in does not have the holder's bound, so the next bound may be lower.
		if known && !was.StandsIn && (s.LeaseUntil < was.LeaseUntil && !(s.Released && s.Nonce == was.Nonce) ||
			s.Term < was.Term) {
			l.Errorf("slot %d went from %+v to %+v", w, was, s)
		}
		l.seen[p], l.zxid[p] = s, stat.Mzxid
	}
}

// slot reads a slot's record. It fails the test if there is none.
func (l *lab) slot(w int) Slot {
	l.Helper()
	data, _, err := l.admin.Get(l.Context(), SlotPath(w))
	if err != nil {
		l.Fatal(err)
	}
	return parseSlot(data)
}

func (l *lab) put(w int, s Slot) {
	l.Helper()
	_, err := l.admin.Set(l.Context(), SlotPath(w), s.marshal(), store.AnyVersion)
	if errors.Is(err, store.ErrNoNode) {
		_, err = l.admin.Create(l.Context(), SlotPath(w), s.marshal(), store.Persistent)
	}
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) remove(path string) {
	l.Helper()
	if err := l.admin.Delete(l.Context(), path, store.AnyVersion); err != nil {
		l.Fatal(err)
	}
	l.forget()
}

func (l *lab) cluster() Cluster {
	l.Helper()
	cl, err := ReadCluster(l.Context(), l.admin)
	if err != nil {
		l.Fatal(err)
	}
	return cl
}

func (l *lab) children(path string) []string {
	l.Helper()
	names, err := l.admin.Children(l.Context(), path)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		l.Fatal(err)
	}
	return names
}

func (l *lab) pass(d time.Duration) { l.now += millis(d) }

// expire ends the sessions that crashes left behind.
func (l *lab) expire() {
	for _, s := range l.gone {
		s.Expire()
	}
	l.gone = nil
}

// The helpers below fail the test if a step fails.

// serve lets all running nodes send heartbeats and issue IDs for the time d.
func (l *lab) serve(d time.Duration) {
	l.Helper()
	for end := l.now + millis(d); l.now < end; {
		l.pass(min(limits.DefaultHeartbeat, time.Duration(end-l.now)*time.Millisecond))
		for _, m := range l.nodes {
			if m.up {
				m.mustBeat()
				m.issue()
			}
		}
	}
}

// disjoint checks that the ranges of two tenures of the same slot do not overlap.
func (l *lab) disjoint() {
	l.Helper()
	l.observe()
	var all []*issuing
	for _, m := range l.nodes {
		all = append(all, m.past...)
	}
	for i, a := range all {
		for _, b := range all[:i] {
			if a.worker == b.worker && max(a.lo, b.lo) < min(a.hi, b.hi) {
				l.Errorf("worker %d: %s has [%d, %d) and %s has [%d, %d)", a.worker, a.who, a.lo, a.hi, b.who, b.lo,
					b.hi)
			}
		}
	}
}

func wantFenced(t testing.TB, err error) {
	t.Helper()
	var fenced *FencedError
	if !errors.As(err, &fenced) {
		t.Errorf("got %v, want a FencedError", err)
	}
}

func wantErrAs[E error](t testing.TB, err error) (e E) {
	t.Helper()
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a %T", err, e)
	}
	return e
}

// faulty returns a hook for calls that match. It lets the first skip of them through and makes the next count of them
// fail with f.
func faulty(f memzk.Fault, skip, count int, match func(memzk.Call) bool) func(memzk.Call) memzk.Fault {
	n := 0
	return func(c memzk.Call) memzk.Fault {
		if !match(c) {
			return memzk.NoFault
		}
		n++
		if n > skip && n <= skip+count {
			return f
		}
		return memzk.NoFault
	}
}

// touching matches calls of the kind op that name the path, or any kind if op is empty. A multi names the paths of all
// its operations.
func touching(op, path string) func(memzk.Call) bool {
	return func(c memzk.Call) bool {
		return cmp.Or(op, c.Op) == c.Op && c.Touches(path)
	}
}

var errClock = errors.New("the clock is wrong")

func refuseClock(Reading, []Reading) error { return errClock }
