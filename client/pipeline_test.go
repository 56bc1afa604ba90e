package client

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
)

// learned makes the client believe that its node owns the family msg:*.
func learned(p *pool, n int) {
	p.owners.learn("msg:x", "owner="+p.nodes[n].address+" family=msg:* section=0 sections=1", p.nodes, time.Now())
}

func TestNamesOfTheSameOwnerGoTogether(t *testing.T) {
	p := queued(t, "msg:a", "msg:b", "order", "msg:a", "msg:c", "msg:b", "msg:d", "msg:e")
	p.queue[4].last = ids.ErrUnavailable // it has failed before
	p.queue[6].oneLine = true
	p.queue[7].want = 3
	learned(p, 0)
	j := filled(p, 0)
	if len(j.calls) != 2 || len(j.more) != 2 || len(p.queue) != 3 {
		t.Fatalf("%d calls, %d more jobs, %d are left", len(j.calls), len(j.more), len(p.queue))
	}
	if b, e := j.more[0], j.more[1]; len(b.calls) != 2 || b.want != 2 || b.query.name != "msg:b" || e.want != 3 {
		t.Errorf("%+v, %+v", b, e)
	}
	for name, change := range map[string]func(p *pool){
		"the node does not own them": func(p *pool) { learned(p, 1) },
		"the node has failed":        func(p *pool) { p.nodes[0].until = time.Now().Add(long) },
		"the first has failed":       func(p *pool) { p.queue[0].last = ids.ErrUnavailable },
	} {
		p := queued(t, "msg:a", "msg:b")
		learned(p, 0)
		change(p)
		if j := filled(p, 0); len(j.calls) != 1 || len(j.more) != 0 {
			t.Errorf("%s: %d calls, %d more jobs", name, len(j.calls), len(j.more))
		}
	}
	var many []string
	for i := range 3 * maxTogether {
		many = append(many, fmt.Sprint("msg:", i))
	}
	p = queued(t, many...)
	learned(p, 0)
	if j := filled(p, 0); len(j.more) != maxTogether-1 || len(p.queue) != 2*maxTogether {
		t.Errorf("%d more jobs, %d calls are left", len(j.more), len(p.queue))
	}
}

// Names whose requests are sent at once get values of their own, also if the node refuses one of them, or the
// connection breaks.
func TestNamesThatGoTogetherEndAlone(t *testing.T) {
	all, addrs := nodes(t, 1)
	all[0].SetShown(func(string) string { return "owner=" + addrs[0] + " family=msg:* section=0 sections=1" })
	c := open(t, Config{Addrs: addrs, Conns: 1})
	if _, err := c.Sequence("msg:first").Next(by(t, long)); err != nil {
		t.Fatal(err)
	}
	all[0].Hold(func(name string) string {
		if name == "msg:7" {
			return "-ERR reason=no-sequence x"
		}
		return ""
	})
	all[0].CutReplies(5000)
	var wg sync.WaitGroup
	for i := range 100 {
		name := fmt.Sprint("msg:", i)
		all[0].SetNext(name, int64(1000*i))
		wg.Go(func() {
			last := int64(1000*i) - 1
			for range 50 {
				vs, err := c.Sequence(name).Take(by(t, long), 1+i%3)
				if i == 7 {
					if reason(err) != "no-sequence" {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				if err != nil || vs[0] <= last || vs[len(vs)-1] >= int64(1000*i+900) {
					t.Errorf("%s: %v after %d, %v", name, vs, last, err)
					return
				}
				last = vs[len(vs)-1]
			}
		})
	}
	wg.Wait()
	if n := all[0].Counts().conns; n < 10 {
		t.Errorf("%d connections", n)
	}
}
