package seq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/timeguard"
)

func TestNameCreatedAgainHasNoMoreCredit(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(10)) // a burst of 100
	a.ask("order", 90, true).first()
	s.remove("order")
	s.create("order", plain(), settings(10))
	s.run(4 * time.Second)
	if r := a.ask("order", 90, true).reason(); r != record.CeilingReached {
		t.Error(r)
	}
}

// A new process finds its worker's record missing before it has read /seq.
func TestLossIsNoticedBeforeSeqIsRead(t *testing.T) {
	for name, wiped := range map[string]bool{"an old copy": false, "wiped": true} {
		s := newStage(t)
		if !wiped {
			s.node().gone()
		}
		a := &actor{stage: s, Machine: machineOf(s.Cluster, s.now), store: s.Mem.Session(), slot: "/workers/0099"}
		_, a.is = New(Config{Store: a.store, Tenure: a, Elapsed: timeguard.NewElapsed(a.Machine)})
		a.noteLoss()
		s.nodes = append(s.nodes, a)
		s.run(2 * stageConfirm)
		if e := s.incarnation(); e != 1 {
			t.Errorf("%s: the incarnation is %d, not 1", name, e)
		}
		if _, err := s.operator().Create(context.Background(),
			operator.Definition{Name: "order", Map: plain(), Settings: settings(1000)}); !errors.Is(err, operator.ErrStartNeeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An operator's write that was prepared before a loss of data must not be made after it.
func TestOperatorWritesInTheSessionThatItRead(t *testing.T) {
	s := newStage(t)
	s.node()
	s.create("order", plain(), settings(1000))
	st := s.Mem.Session()
	st.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Op == "multi" {
			st.Expire()
		}
		return memzk.NoFault
	})
	o := s.operator()
	o.Store = st
	if _, err := o.Delete(context.Background(), "order"); !errors.Is(err, store.ErrUnreachable) {
		t.Error(err)
	}
	if v := s.view("order"); v.Record.DeletedAt != 0 {
		t.Error("the sequence is deleted")
	}
}

// The server of one node lags behind, so the node does not see that another one has raised the incarnation.
func TestNoBlockIsTakenInAnEarlierIncarnation(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.create("order", plain(), settings(1000))
	s.run(4 * time.Second)
	a.store.Lag()
	b.noteLoss()
	_ = b.round()
	if r := a.ask("order", 1, false).reason(); r != record.Confirming {
		t.Error(r)
	}
	if v := s.view("order"); v.State.Incarnation != 1 || v.Record.Next != 0 {
		t.Errorf("%+v, %+v", v.State, v.Record)
	}
}

func TestNameCreatedAgainWithAHigherStart(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 5000, false).first()
	s.remove("order")
	s.run(4 * time.Second)
	m := plain()
	m.Start = 1_000_000
	s.create("order", m, settings(1000))
	s.run(4 * time.Second)
	if v := a.ask("order", 1, false).first(); v != 1_000_000 {
		t.Error(v)
	}
}

func TestDamagedRecordConcernsOneSequence(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("good", plain(), settings(1000))
	s.create("bad", plain(), settings(1000))
	s.run(5 * time.Second)
	a.ask("bad", 1, false).first()
	s.write(record.Path("bad"), []byte("x"))
	a.noteLoss()
	s.run(time.Hour) // longer than the hold
	if v := a.ask("good", 1, false).first(); v < 1 {
		t.Error(v)
	}
	if r := a.ask("bad", 1, false).reason(); r != record.Frozen {
		t.Error(r)
	}
}

// ZooKeeper is put back while a round reads. The session in which the round began knew an older incarnation.
func TestLossInTheMiddleOfARound(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 10, false).first()
	a.noteLoss() // incarnation 2, in the session that began in incarnation 1
	s.run(5 * stageConfirm)
	a.ask("order", 40, false).first()
	s.run(5 * stageConfirm)
	c, known := s.Mem.Snapshot(), a.is.issuer.series.findOrAdd("order")
	for gen := known.Known.WriteCount; known.Known.WriteCount == gen; s.now += 100 {
		a.ask("order", 40, false).first()
	}
	armed := true
	a.calls = func(call memzk.Call) memzk.Fault {
		if armed && call.Path == record.Path("order") {
			armed = false
			s.Mem.Restore(c)
			s.Mem.SetEpoch(9)
		}
		return memzk.NoFault
	}
	a.is.issuer.series.markStale([]string{"order"})
	s.run(stageConfirm)
	if e := s.incarnation(); e != 2 {
		t.Errorf("the incarnation is %d, not 2", e)
	}
}
