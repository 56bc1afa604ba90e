package client

import (
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
)

// An address comes to belong to a node of another cluster after the first call. Its IDs and values are not handed out.
func TestNodeOfAnotherClusterFails(t *testing.T) {
	for name, cfg := range map[string]Config{"the first one's": {}, "by name": {Cluster: "a"}, "by UUID": {Cluster: "of-a"}} {
		a, b := NewFakeNode(), NewFakeNode()
		a.set(func() { a.cluster = "a" })
		b.set(func() { b.cluster, b.last = "a", 1_000_000 })
		defer a.Stop()
		defer b.Stop()
		cfg.Addrs = []string{a.Addr, b.Addr}
		c := open(t, cfg)
		for _, next := range []func() (int64, error){
			func() (int64, error) { id, err := c.Next(by(t, time.Second)); return int64(id), err },
			func() (int64, error) { return c.Sequence("order").Next(by(t, time.Second)) },
		} {
			a.Start()
			if v, err := next(); err != nil || v > 1000 {
				t.Errorf("%s: %d, %v", name, v, err)
			}
			b.set(func() { b.cluster = "b" })
			a.Stop()
			v, err := next()
			if err == nil || code(err) != ids.WRONGNODE && !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s: %d, %v", name, v, err)
			}
		}
	}
}

// A node may refuse to say its cluster, and answer what was sent behind that. Such a reply must not go to another call.
func TestRefusalToSayTheClusterEndsAllOfItsConnection(t *testing.T) {
	c := saying(whole("-NOTREADY starting\n-NOTREADY starting\n7\n"))
	c.known, c.cluster = false, &cluster{Cluster: dialog.Want("")}
	j := &job{query: query{verb: "NEXT a", name: "a"}, want: 1, share: time.Second}
	j.more = []*job{{query: query{verb: "NEXT b", name: "b"}, want: 1}}
	if _, err := c.getAll(j); code(err) != ids.NOTREADY || j.more[0].numbers != nil || !c.broken {
		t.Errorf("%v, then %d, broken %v", err, j.more[0].numbers, c.broken)
	}
	c = saying(whole("-NOTREADY starting\n7\n8\n"))
	c.known, c.cluster = false, &cluster{Cluster: dialog.Want("")}
	if _, err := c.getAll(j); code(err) != ids.NOTREADY || j.more[0].numbers != nil || !c.broken {
		t.Errorf("%v, then %d, broken %v", err, j.more[0].numbers, c.broken)
	}
}
