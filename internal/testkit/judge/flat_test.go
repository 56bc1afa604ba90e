package judge

import (
	"testing"

	"github.com/flaked/flaked/worker"
)

func TestFlatKeepsOrder(t *testing.T) {
	for _, text := range []string{"leaf", "sonyflake", "pearflower", "time=40,worker=8,rollback=2,sequence=10", "time=40,sequence=10,rollback=1,worker=8,datacenter=2"} {
		l, err := worker.ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		f := Flatten(l)
		put := func(fields worker.Fields) worker.ID {
			id, err := l.Encode(fields)
			if err != nil {
				t.Fatal(err)
			}
			return f.ID(id)
		}
		a, b := put(worker.Fields{Tick: 77, Worker: 5, Sequence: 3}), put(worker.Fields{Tick: 77, Worker: 5, Sequence: 4})
		if b != a+1 {
			t.Errorf("%s: neighbours are %d and %d", text, a, b)
		}
		got, err := f.Layout().Decode(a)
		if err != nil || got.Tick != 77 || got.Worker != 5 || got.Sequence != 3 {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if later := put(worker.Fields{Tick: 78}); later <= b {
			t.Errorf("%s: %d in the next tick, after %d", text, later, b)
		}
		if l.RollbackBits == 0 {
			continue
		}
		rolled := put(worker.Fields{Tick: 77, Worker: 5, Rollback: 1, Sequence: 3})
		if got, err := f.Layout().Decode(rolled); err != nil || got.Worker == 5 || rolled == a {
			t.Errorf("%s: after a rollback %+v, %v", text, got, err)
		}
		all := f.Workers(map[int64]worker.ID{5: a, 5 + 1<<l.WorkerBits: rolled})
		if len(all) != 1 || all[5] != max(a, rolled) {
			t.Errorf("%s: %v", text, all)
		}
	}
	if id := Flatten(worker.Sonyflake()).ID(-5); id != -1 {
		t.Errorf("no ID becomes %d", id)
	}
}
