package seq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// A node with values in stock follows an operator at its next heartbeat.
func TestStockBelowARaisedNextIsDropped(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 10, false).first()
	s.setNext("order", 5000)
	s.run(4 * time.Second)
	if v := a.ask("order", 1, false).first(); v != 5000 {
		t.Error(v)
	}
}

func TestStockOfADeletedSequenceIsDropped(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 10, false).first()
	s.remove("order")
	s.run(4 * time.Second)
	if r := a.ask("order", 1, false).reason(); r != NoSequence {
		t.Error(r)
	}
}

func TestNameCreatedAgainBeginsAboveItsEarlierLife(t *testing.T) {
	s := newStage(t)
	a := s.node()
	m := plain()
	m.Increment = 3
	s.create("order", m, settings(1000))
	a.ask("order", 100, false).first()
	last := s.view("order").record
	s.remove("order")
	r := s.create("order", plain(), settings(1000))
	if got, want := r.Value(r.Next), last.Value(last.Next-1)+1; got != want {
		t.Errorf("the next value is %d, not %d", got, want)
	}
}

func TestNameCreatedAgainHasNoMoreCredit(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(10)) // a burst of 100
	a.ask("order", 90, true).first()
	s.remove("order")
	s.create("order", plain(), settings(10))
	s.run(4 * time.Second)
	if r := a.ask("order", 90, true).reason(); r != CeilingReached {
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
		a := &actor{stage: s, store: s.mem.Session(), slot: "/workers/0099"}
		a.is = New(Config{Store: a.store, Tenure: a, Now: func() int64 { return simEpoch + s.now }, Mono: func() int64 { return (s.now + 1) * 1e6 }})
		a.noteLoss()
		s.nodes = append(s.nodes, a)
		s.run(2 * stageConfirm)
		if e := s.incarnation(); e != 1 {
			t.Errorf("%s: the incarnation is %d, not 1", name, e)
		}
		if _, err := s.operator().Create(context.Background(), Definition{Name: "order", Map: plain(), Settings: settings(1000)}); !errors.Is(err, ErrStartNeeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An operator's write that was prepared before a loss of data must not be made after it.
func TestOperatorWritesInTheSessionThatItRead(t *testing.T) {
	s := newStage(t)
	s.node()
	s.create("order", plain(), settings(1000))
	st := s.mem.Session()
	st.SetFault(func(c store.Call) store.Fault {
		if c.Op == "multi" {
			st.Expire()
		}
		return store.NoFault
	})
	o := s.operator()
	o.Store = st
	if _, err := o.Delete(context.Background(), "order"); !errors.Is(err, store.ErrUnreachable) {
		t.Error(err)
	}
	if v := s.view("order"); v.record.DeletedAt != 0 {
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
	if r := a.ask("order", 1, false).reason(); r != Confirming {
		t.Error(r)
	}
	if v := s.view("order"); v.state.Incarnation != 1 || v.record.Next != 0 {
		t.Errorf("%+v, %+v", v.state, v.record)
	}
}
