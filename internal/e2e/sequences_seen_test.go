package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/browser"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/seqstore"
)

// The page of a node, flaked status and flaked doctor show sequences, and which one has been used up.
func TestOperatorsSeeSequences(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.started("--admin", "127.0.0.1:0").ready()
	p := b.Open(t, n.page(), browser.View{Width: 1280, Height: 900})
	p.Until("document.querySelector('#link[data-state=connected]') && !document.querySelector('#h-seq').getClientRects().length")
	for _, name := range []string{"order", "used-up"} {
		s.create(name)
		n.until("it issues values of "+name, func() bool { _, ok := n.next(name); return ok })
	}
	p.Until(says("#sequences", "order") + " && " + says("#sequences", "/s") + " && " + says("#first", "Healthy"))

	end := int64(1) << 53
	o := seqstore.Operator{Store: s.records().zk, Now: func() int64 { return time.Now().UnixMilli() }, By: "test"}
	if _, err := o.Set(context.Background(), "used-up", seqstore.Change{Next: &end}); err != nil {
		t.Fatal(err)
	}
	p.Until("document.querySelector('#sequences tbody tr').innerText.includes('used-up') && " + says("#sequences", "exhausted") + " && " + says("#wrong", "taken all values: used-up"))
	if r := s.command("status"); !strings.Contains(r.stdout, "\n2 named sequences: 1 exhausted (used-up).") {
		t.Errorf("%+v", r)
	}
	r := s.command("doctor", "--state-dir", n.dir, "--heartbeat", "200ms", "--listen", "127.0.0.1:0", "--admin", "off", "--timeout", "20s")
	if !strings.Contains(r.stdout, "\nwarn  sequences        Exhausted sequences, of which nodes have taken all values: used-up. ") {
		t.Errorf("%+v", r)
	}
}
