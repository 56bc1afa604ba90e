package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/browser"
	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// page returns the URL of the node's status page. The node must have been started with
// --admin 127.0.0.1:0.
func (n *node) page() string {
	n.site.t.Helper()
	var at string
	n.until("it serves HTTP", func() bool {
		if m := servingHTTP.FindStringSubmatch(n.proc.log()); m != nil {
			at = "http://127.0.0.1:" + m[1] + "/"
		}
		return at != ""
	})
	return at
}

// soonEnough is the time within which the page must show a problem.
const soonEnough = 5 * time.Second

// soon calls happen and fails the test unless the page then shows the problem within
// soonEnough. shows and shownNoMore are conditions on the page. Because the machine may be
// busy, soon makes up to three tries, with undo in between.
func soon(t *testing.T, p *browser.Tab, what string, happen func(), shows string, undo func(), shownNoMore string) {
	t.Helper()
	for try := 1; ; try++ {
		happen()
		took := p.Until(shows)
		t.Logf("%s is seen after %v", what, took.Round(10*time.Millisecond))
		switch {
		case took <= soonEnough:
			return
		case try == 3:
			t.Errorf("%s is seen after %v", what, took)
			return
		}
		undo()
		p.Until(shownNoMore)
	}
}

func says(part, text string) string {
	return fmt.Sprintf("document.querySelector(%q).innerText.includes(%q)", part, text)
}

// The page of a node shows a killed node, another node's stepped clock, and the loss of its own
// link to ZooKeeper within five seconds.
func TestStatusPage(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	clock := new(ownclock.Clock)
	looked, killed, stepped := s.node("--admin", "127.0.0.1:0"), s.node(), s.node().on(clock)
	link := looked.network()
	for _, n := range []*node{looked, killed, stepped} {
		n.start()
	}
	for _, n := range []*node{looked, killed, stepped} {
		n.ready()
	}
	p := b.Open(t, looked.page(), browser.View{Width: 1280, Height: 900})
	p.Until("document.querySelectorAll('a.cell.live').length === 3 && " + says("#first", "Healthy"))
	dead, wrong := fmt.Sprintf("#w%d", killed.worker()), fmt.Sprintf("#w%d", stepped.worker())
	is := func(cell, class string) string { return fmt.Sprintf("document.querySelector(%q)", cell+class) }

	soon(t, p, "a stepped clock", func() { clock.Set(-90 * time.Minute) },
		is(wrong, ".off")+" && "+says("#clocks", stepped.name+" 1h")+" && "+says("#nodes", " slow"),
		func() { clock.Set(0) }, "!"+is(wrong, ".off"))
	soon(t, p, "a killed node", killed.kill,
		is(dead, ".disconnected")+" && "+says("#wrong", "("+killed.name+") is disconnected"),
		func() { killed.start().ready() }, is(dead, ".live"))
	soon(t, p, "a ZooKeeper that is cut off", link.BlackHole,
		says("#wrong", "ZooKeeper has not answered this node since")+" && document.querySelector('#node .bad')",
		link.Heal, "!document.querySelector('#node .bad')")

	id := fmt.Sprint(looked.get(1)[0])
	p.Eval("document.querySelector('#id').focus()", nil)
	p.Type(id)
	p.Until(says("#decoded", fmt.Sprintf("worker %d", looked.worker())) + " && " + says("#decoded", time.Now().UTC().Format(time.DateOnly)))

	// An open page does not delay the stop of its node, and shows that it has lost contact.
	link.Heal()
	began := time.Now()
	looked.stop()
	if took := time.Since(began); took > soonEnough {
		t.Errorf("it took %v to stop", took)
	}
	p.Until("document.querySelector('#link[data-state=lost]')")
	for _, said := range p.Said() {
		if !strings.Contains(said, "net::ERR_") { // expected after the stop
			t.Errorf("the page says %s", said)
		}
	}
}
