package e2e

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/browser"
	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

var screenshots = flag.String("screenshots", "", "a directory for pictures of the status page")

// firstScreen fails the test unless the visible part of the page has text that matches the
// patterns, in this order. It checks a desktop and a phone, with light and with dark colours.
func firstScreen(t *testing.T, p *browser.Tab, name string, order ...string) {
	t.Helper()
	const inView = `[...document.querySelectorAll('#contact p, #serves p, #left p, #wrong h2, #wrong h3, #wrong p')]
		.filter(e => e.getClientRects().length && e.getBoundingClientRect().bottom <= innerHeight).map(e => e.innerText).join('\n')`
	for _, view := range []browser.View{
		{Width: 1280, Height: 800}, {Width: 1280, Height: 800, Dark: true}, {Width: 390, Height: 844}, {Width: 390, Height: 844, Dark: true},
	} {
		p.Look(view)
		p.Eval("scrollTo(0, 0)", nil)
		var text string
		p.Eval(inView, &text)
		if !regexp.MustCompile("(?s)" + strings.Join(order, ".*")).MatchString(text) {
			t.Errorf("%s, at %d pixels: want %q in\n%s", name, view.Width, order, text)
		}
		if *screenshots != "" {
			device, colours := map[int]string{1280: "desktop", 390: "phone"}[view.Width], map[bool]string{false: "light", true: "dark"}[view.Dark]
			p.FirstScreen(filepath.Join(*screenshots, fmt.Sprintf("%s-%s-%s.png", name, device, colours)))
		}
	}
}

const aTime = `\d\d:\d\d:\d\d`

// lostContact matches the beginning of the page after it has lost contact with its node.
const lostContact = "^State unknown\nLost contact with this node \\d+\u00a0s ago. This page shows the node's state at " + aTime

// servesOnly waits until the first screen has the text and the page shows a rate of IDs and no
// rate of refusals. Refusals may remain from the start, or come from a machine that stalls.
func servesOnly(n *node, p *browser.Tab, first string) {
	n.site.t.Helper()
	n.until("the page shows IDs and no refusals", func() bool {
		if _, err := n.ask("GET"); err != nil {
			return false
		}
		figures := p.Text("#node")
		return regexp.MustCompile(`[1-9][\d,.]* IDs/s`).MatchString(figures) && !strings.Contains(figures, "/s refused") && strings.Contains(p.Text("#first"), first)
	})
}

// The first screen says whether the node serves, for how long, what is wrong and what to do. It
// does not show old readings as if they were current.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	clock := new(ownclock.Clock)
	looked, stepped, other := s.node("--admin", "127.0.0.1:0"), s.node("--admin", "127.0.0.1:0").on(clock), s.node()
	link := looked.network()
	nodes := []*node{looked, stepped, other}
	for _, n := range nodes {
		n.start()
	}
	for _, n := range nodes {
		n.ready()
	}
	p := b.Open(t, looked.page(), browser.View{Width: 1280, Height: 800})
	p.Until("document.querySelectorAll('a.cell.live').length === 3 && " + says("#link", "page connected") + " && " + says("#first", "Healthy"))
	servesOnly(looked, p, "Healthy")
	firstScreen(t, p, "healthy", "^Serving IDs", "No time limit", `If ZooKeeper fails now, this node serves for another \S+\.`, "Healthy")

	// The page must not show a report as younger than its last reading.
	cut := time.Now()
	link.BlackHole()
	p.Until("document.querySelector('#serves .warn') && " + says("#nodes", "ZooKeeper has not been read since") +
		" && document.querySelector('.cells.was')")
	servesOnly(looked, p, "ZooKeeper has not answered this node")
	firstScreen(t, p, "zookeeper-down", "^Serving IDs", `\S+ left: the node stops serving at `+aTime+" UTC unless it reaches ZooKeeper", "What is wrong",
		"ZooKeeper has not answered this node since "+aTime+" UTC", "What to do: Restore ZooKeeper, or the network to it, before "+aTime)
	var table string
	p.Eval("document.querySelector('#nodes').innerText", &table)
	if n := strings.Count(table, "was live"); n != 3 {
		t.Errorf("%v after the cut %d of 3 workers are shown as having been live:\n%s", time.Since(cut), n, table)
	}
	if young := regexp.MustCompile(`\b\d+ms ago`).FindString(table); young != "" {
		t.Errorf("%v after the cut a report is shown as of %s:\n%s", time.Since(cut), young, table)
	}
	link.Heal()
	p.Until(says("#first", "Healthy") + " && !document.querySelector('.cells.was, .as-of')")

	// A suspended node sends nothing, and its connections stay open.
	looked.proc.freeze()
	took := p.Until("document.querySelector('#link[data-state=lost]')")
	t.Logf("that the node stands still is seen after %v", took.Round(10*time.Millisecond))
	firstScreen(t, p, "suspended", lostContact,
		"If the node still runs, it serves at least until "+aTime+` UTC, and longer if it reaches ZooKeeper. It had \S+ left at the last update.`, "What to do: Check", "Was serving IDs")
	looked.proc.thaw()
	p.Until("document.querySelector('#link[data-state=connected]') && document.querySelector('#contact').hidden")

	p2 := b.Open(t, stepped.page(), browser.View{Width: 1280, Height: 800})
	p2.Until(says("#first", "Healthy"))
	clock.Set(-time.Hour)
	p2.Until("document.querySelector('#serves .bad') && " + says("#wrong", "clock"))
	firstScreen(t, p2, "clock-stepped", "^Not serving IDs", "No time left", "What is wrong", "This machine's clock (went back|is wrong)", "What to do: Check with chronyc tracking, then set the clock right")
	p2.Until(`document.querySelector('a.cell.own.off')`)
	if left := p2.Text("#node td[data-is='Lease left']"); left != "–" {
		t.Errorf("it serves no IDs, and Lease left is %s", left)
	}
	var wrong string
	p2.Eval("document.querySelector('#wrong').innerText", &wrong)
	if n := strings.Count(wrong, "clock is"); n > 1 {
		t.Errorf("it is said %d times:\n%s", n, wrong)
	}

	p.Until(says("#wrong", "refuses to serve"))
	looked.kill()
	p.Until("document.querySelector('#link[data-state=lost]')")
	firstScreen(t, p, "killed", lostContact, "What to do: Check whether the process runs", "Was serving IDs", "Wrong in the cluster, as last seen")
	if text := p.Text("#first"); strings.Contains(text, "What is wrong") {
		t.Errorf("another node's fault stands as this one's:\n%s", text)
	}
	var green []string
	p.Eval(`[...document.querySelectorAll('#first, #serves *')].map(e => getComputedStyle(e)).flatMap(s => [s.color, s.backgroundColor, s.borderTopColor])
		.filter(c => { const [r, g, b, a] = c.match(/[\d.]+/g).map(Number); return a !== 0 && g > r + 12 && g > b + 12 })`, &green)
	if len(green) > 0 {
		t.Errorf("the page of a node that is gone is green: %q", green)
	}
}

func TestFirstScreenOfADevelopmentNode(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	n := launch(t, "n", nil, shipped.binary(t), "serve", "--dev", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "text")
	at := ""
	eventually(t, "it serves", func() bool {
		if m := servingHTTP.FindStringSubmatch(n.log()); m != nil {
			at = "http://127.0.0.1:" + m[1] + "/"
		}
		return at != "" && strings.Contains(n.log(), "node: serving: ")
	})
	p := b.Open(t, at, browser.View{Width: 1280, Height: 800})
	p.Until("document.querySelector('#link[data-state=connected]') && " + says("#serves", "Serving IDs"))
	firstScreen(t, p, "dev", "^Serving IDs", "No time limit", "What is wrong", "This is a development node", "What to do: Do not keep its IDs")
}
