package e2e

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// In sonyflake's layout the worker is below the sequence and has 16 bits, so IDs of one tick are
// 65,536 apart. A node without --layout takes the layout from its state and from ZooKeeper.
func TestSonyflakesLayout(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	s.ids.layout = worker.Sonyflake()
	a := s.started("--layout", "sonyflake").ready()
	b := s.started().ready() // takes the cluster's layout
	if a.worker() == b.worker() {
		t.Fatalf("both are worker %d", a.worker())
	}
	for _, n := range []*node{a, b} {
		ids := n.get(1000)
		apart := 0
		for i, id := range ids[1:] {
			if id-ids[i] == 1<<16 {
				apart++
			}
		}
		if apart < 900 {
			t.Errorf("%s: %d of 999 neighbours are 65,536 apart", n.name, apart)
		}
		line, err := n.ask("DECODE " + ids[0].String())
		f, err2 := worker.Sonyflake().Decode(ids[0])
		if err != nil || err2 != nil || !strings.Contains(line, " worker="+worker.ID(f.Worker).String()+" sequence="+worker.ID(f.Sequence).String()) {
			t.Errorf("%q, %v; %+v, %v", line, err, f, err2)
		}
	}
	if cl, ok := s.records().cluster(); !ok || cl.Layout != worker.Sonyflake().String() || cl.Slots != 1<<16 {
		t.Errorf("the cluster's record is %+v", cl)
	}
	a.kill()
	a.start().ready().get(10)
	b.stop()
	b.start().ready().get(10)
	other := s.started("--layout", "time=39@10ms,worker=16,sequence=8,epoch=2014-09-01")
	other.fails(1, `--layout time=39@10ms,datacenter=0,worker=16,sequence=8,.* differs from the cluster's time=39@10ms,sequence=8`)
}
