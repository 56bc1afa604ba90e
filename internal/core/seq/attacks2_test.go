package seq

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// ZooKeeper ends the session before a node has put all records back. That is no other loss of data: after it, the
// first block would leave out all that the sequence may ever have issued.
func TestSessionEndsBeforeRecordsArePutBack(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 1, false).first()
	s.run(stageConfirm)
	old := s.mem.Snapshot()
	a.ask("order", 500, true).first()
	s.mem.Restore(old)
	s.mem.SetEpoch(2)
	a.noteLoss()
	cut := true
	a.calls = func(c store.Call) store.Fault {
		if cut && c.Op == "multi" {
			return store.FailBefore
		}
		return store.NoFault
	}
	for range 2 {
		s.run(4 * time.Second)
		a.store.Expire()
	}
	cut = false
	s.run(3 * stageConfirm)
	if e := s.incarnation(); e != 1 {
		t.Errorf("the incarnation is %d, not 1", e)
	}
	if r := s.view("order").record; r.Next < 500 {
		t.Errorf("the record is not put back: next is %d", r.Next)
	}
}

// Issuer.forget removes a name between the look at it and the wait.
func TestShowOfAForgottenName(t *testing.T) {
	s := newStage(t)
	a := s.node()
	if r := a.ask("order", 1, false).reason(); r != NoSequence {
		t.Fatal(r)
	}
	mono := a.is.cfg.Mono
	a.is.cfg.Mono = func() int64 {
		if forgotten := a.is.find([]byte("order")); forgotten != nil {
			forgotten.forgotten = true
			a.is.remove(func(x *series) bool { return x == forgotten })
			s.now += 10_000
		}
		a.is.cfg.Mono = mono
		return mono()
	}
	var w sequence.Wait
	woken := make(chan struct{}, 1)
	if _, err := a.is.Show(&w, []byte("order"), func() { woken <- struct{}{} }); err != sequence.ErrPending {
		t.Fatal(err)
	}
	_ = a.round()
	select {
	case <-woken:
	default:
		t.Error("the request is not woken")
	}
}

// A node that stops gives back the rest of its block, although it or another node has renewed the record since.
func TestRestIsGivenBackAfterARenewal(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 1, false).first()
	s.run(3 * time.Minute)
	if err := a.is.giveBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := b.ask("order", 1, false).first(); v != 2 {
		t.Errorf("the next node begins at %d", v)
	}
}

// The disk changes one byte of what a node remembers. A wrong next position would be put back, or a wrong write count
// taken for a loss of data.
func TestDamagedWitnessIsIgnored(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 1, false).first()
	w, ok := a.is.witness()
	w.Keys = map[string][]byte{"order": make([]byte, keyEntryLen)}
	path := filepath.Join(t.TempDir(), "sequences.cache")
	if err := saveWitness(path, w, new(atomic.Bool)); err != nil || !ok {
		t.Fatal(err, ok)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := loadWitness(path); !ok || !reflect.DeepEqual(got, w) {
		t.Fatal(got, ok)
	}
	for k := range data {
		damaged := bytes.Clone(data)
		damaged[k] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := loadWitness(path); ok {
			t.Fatalf("byte %d is %q instead of %q: %+v", k, damaged[k], data[k], got)
		}
	}
}

// A node knows many sequences, and has rounds all the time.
func TestWitnessIsMadeOnlyWhenItIsDue(t *testing.T) {
	s := newStage(t)
	a := s.node()
	for k := range 1000 {
		a.is.named(fmt.Sprint("order", k)).know(usual(nil))
	}
	saved := 0
	a.is.savedAs = coordinator.Followed{} // the file is new
	a.is.keep = func(Witness) error { saved++; return nil }
	s.run(30 * time.Second)
	if saved != 1 {
		t.Errorf("the file is written %d times, although it is new", saved)
	}
}

// Values do not wait for the disk, but operators hear of a change only when it is there.
func TestWitnessOnADiskThatHangs(t *testing.T) {
	s := newStage(t)
	a := s.node()
	var hang []func()
	a.is.beside = func(f func()) { hang = append(hang, f) }
	s.create("orders", plain(), settings(1000))
	s.run(5 * time.Second)
	if got := a.ask("orders", 1, false).first(); got != 1 {
		t.Errorf("the first value is %d", got)
	}
	if got := a.is.Followed(); got.Changes > 1 || got.Compared != 1 || len(hang) != 1 {
		t.Errorf("followed %+v, and %d writes have begun", got, len(hang))
	}
	hang[0]()
	s.run(time.Second)
	if got := a.is.Followed(); got != (coordinator.Followed{Changes: 2, Compared: 1}) {
		t.Errorf("followed %+v", got)
	}
}

// A disk that hangs delays a stop no longer than a round of calls: the worker must still be given back.
func TestStopOnADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, hang := New(Config{}), make(chan error)
		is.saving = &saving{ended: hang}
		began := time.Now()
		is.saveLast()
		if took := time.Since(began); took != limits.Round {
			t.Errorf("the stop takes %s", took)
		}
		close(hang)
	})
}

// A whole incarnation is lost. The sequence has such a high ceiling, and is so old, that its peak is above the last int64.
func TestSkipByThePeakDoesNotOverflow(t *testing.T) {
	now := int64(10_000_000_000)
	r := usual(func(r *Record) {
		r.Max, r.Credit, r.At = math.MaxInt64, 0, now
		r.Ceiling, r.HardCeiling = 1e12, 1e12
		r.PeakFrom = r.Next + 1e13
	})
	if c, refusal := r.plan(3, 1, 1, now); refusal.reason() != Frozen {
		t.Errorf("%v, %v", c.block, refusal)
	}
}

// A template that was deleted in an earlier incarnation, and is created again, issues nothing. So its sequences leave out
// no more than the operator says.
func TestTemplateCreatedAgainInALaterIncarnation(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("order:*", 1, 5)
	s.remove("order:*")
	s.run(24 * time.Hour)
	a.noteLoss()
	s.run(2 * stageConfirm)
	s.createTemplate("order:*", 1, 5)
	next := int64(5000)
	s.set("order:*", Change{Next: &next, VouchedIn: s.incarnation()})
	s.run(4 * time.Second)
	if v := a.ask("order:1", 1, false).first(); v != next {
		t.Error(v)
	}
}
