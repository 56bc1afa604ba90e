package admin

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/testkit/browser"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

var screenshots = flag.String("screenshots", "", "a directory for pictures of the status page")

// hostile is a name that somebody wrote to ZooKeeper.
const hostile = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">"'`

// picture returns a process and a cluster with workers in every state.
func picture(total, held int) Config {
	began := time.Now()
	events := NewEvents(nil)
	events.Accept("flaked.node", hclog.Info, "serving", "worker", 3, "term", 7, "lease_left_s", 86400)
	events.Accept("flaked.node", hclog.Warn, "clock offset is large", "worst_offset_ms", 3600000, "against", 1)
	events.Accept(hostile, hclog.Error, hostile, hostile, hostile)
	name := func(w int) string {
		if w == 4 {
			return hostile
		}
		return fmt.Sprintf("ids-%d", w)
	}
	return Config{
		Events: events,
		About:  About{Version: "1.2.3", Name: "ids-3", Host: "h3", PID: 42, StartedMs: began.Add(-time.Hour).UnixMilli()},
		Workers: func() []node.Snapshot {
			now := time.Now().UnixMilli()
			return []node.Snapshot{{
				Name: "ids-3", Worker: new(3), Term: 7, Phase: node.Serving, Ready: true, Confirmed: true, NowMs: now,
				LeaseLeftMs: new(int64(86_000_000)), LeaseEndsMs: new(now + 86_000_000), ReservedLeftMs: new(int64(2_731)),
				Clock:     node.ClockSnapshot{OffsetMs: new(0.5), UncertaintyMs: new(2.0), WorstMs: new(1.5), WorstUncertaintyMs: new(2.0), Voters: 5},
				ZooKeeper: node.ZooKeeperSnapshot{OK: true, Session: true, HeartbeatAgeMs: new(int64(812)), HeartbeatMs: 3000},
				Disk:      node.DiskSnapshot{OK: true},
				Cluster: node.ClusterSnapshot{
					Name: "orders", UUID: "624812a4", Layout: "time=41@1ms,worker=10,sequence=12,epoch=1288834974657", Slots: total, EpochEndsMs: new(int64(3487858230209)),
				},
			}}
		},
		Counters: func() lineproto.Counters { return busy(time.Since(began)) },
		Slots: func(context.Context) (clusterview.Report, error) {
			s := clusterview.Report{Summary: clusterview.Summary{Slots: total, Used: held, Free: total - held, Problems: []clusterview.Problem{{Severity: clusterview.Critical, Text: "worker 1 (ids-1) is disconnected: its node is not connected to ZooKeeper", Advice: "Start the node again, or restore its connection to ZooKeeper."}}}}
			phase := time.Since(began).Seconds()
			for w := range held {
				one := clusterview.WorkerReport{
					Worker: w, Name: name(w), Node: "18b34979-0000-4000-8000-000000000000", Host: "h", Address: fmt.Sprintf("10.0.%d.%d:7609", w/250, w%250),
					PID: 42, Version: "1.2.3", State: "live", Phase: "serving", Term: int64(w%5 + 1), Confirmed: true, HeartbeatMs: 3000,
					ClockOffsetMs: new(3 * math.Sin(phase/3+float64(w))), ClockUncertaintyMs: new(0.5), LeaseLeftMs: new(int64(86_000_000)), ReportAgeMs: new(int64(1200)),
				}
				switch {
				case w == 2:
					one.ClockOffsetMs, one.Phase = new(-3_600_000.0), "refusing"
				case w == 5:
					one.ReportAgeMs = new(int64(4100))
				case w%7 == 1:
					one.State, one.ClockOffsetMs = clusterview.Disconnected, nil
					s.Summary.Disconnected++
				case w%11 == 6:
					one.State, one.ClockOffsetMs = clusterview.Stopped, nil
					s.Summary.Stopped++
				case w%13 == 8:
					one.State, one.ClockOffsetMs = clusterview.Releasing, nil
					s.Summary.Releasing++
				case w%17 == 9:
					one.State, one.ClockOffsetMs = clusterview.RecordMissing, nil
					s.Summary.RecordMissing++
				}
				s.Workers = append(s.Workers, one)
			}
			s.Summary.Live = held - s.Summary.Disconnected - s.Summary.Stopped - s.Summary.Releasing - s.Summary.RecordMissing
			s.Summary.Held = s.Summary.Live + s.Summary.Disconnected + s.Summary.Stopped
			return s, nil
		},
	}
}

// busy returns the counters of a node after d, under a load that rises and falls.
func busy(d time.Duration) lineproto.Counters {
	n := 40_000 * int64(1e6+60*d.Seconds()+1500*math.Sin(d.Minutes()))
	return lineproto.Counters{
		Durations: lineproto.Histogram{Bounds: []float64{64e-6, 128e-6, 256e-6}, N: []int64{n * 90, n * 9, n, 0}},
		ConnsOpen: 12, ConnsTotal: 40, IDs: n / 10, Requests: []lineproto.RequestCount{{Command: "GET", Result: "OK", N: n / 100}},
	}
}

// keep saves a screenshot in the directory of the flag -screenshots, if that is set.
func keep(t *testing.T, p *browser.Tab, name string) {
	t.Helper()
	if *screenshots != "" {
		p.Screenshot(filepath.Join(*screenshots, name+".png"))
	}
}

// aged starts a server whose charts have a history of ten minutes.
func aged(t *testing.T, cfg Config) (addr string) {
	t.Helper()
	s, err := New(whole(cfg))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for back := pastKept; back > 0; back -= sampleEvery {
		found, _ := cfg.Slots(t.Context())
		for i, w := range found.Workers {
			if w.ClockOffsetMs != nil {
				*w.ClockOffsetMs = 20 * math.Sin(back.Minutes()*float64(i%5+1)/2+float64(i))
			}
			if w.Worker == 2 && back < 3*time.Minute {
				*w.ClockOffsetMs = -3_600_000
			}
		}
		s.pages.past.noteClocks(now.Add(-back), found, back < 5*time.Minute || back > 6*time.Minute)
		s.pages.past.note(now.Add(-back), busy(-back), 0)
	}
	addr, _ = serve(t, s)
	return addr
}

func TestPageInABrowser(t *testing.T) {
	b := browser.Start(t)
	small, large := aged(t, picture(32, 20)), aged(t, picture(1024, 900))
	const query = "/?worker=4&id=2123840322550104099"
	const wide, narrow = 1280, 360
	t.Run("looks", func(t *testing.T) {
		for _, row := range []struct {
			name, addr   string
			cells, width int
		}{
			{"desktop", small, 32, wide}, {"phone", small, 32, narrow},
			{"desktop-1024", large, 1024, wide}, {"phone-1024", large, 1024, narrow},
		} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				view := browser.View{Width: row.width, Height: 800}
				p := b.Open(t, "http://"+row.addr+query, view)
				p.Until(`document.querySelector('#link[data-state=connected]')`)
				var cells, width int
				p.Eval(`document.querySelectorAll('.cells .cell').length`, &cells)
				p.Eval(`document.documentElement.scrollWidth`, &width)
				if cells != row.cells || width > row.width {
					t.Errorf("%d cells, want %d; %d wide on %d", cells, row.cells, width, row.width)
				}
				if text := p.Text("#detail"); !strings.Contains(text, hostile) {
					t.Errorf("the name is not as it is: %s", text)
				}
				readable(t, p)
				keep(t, p, row.name+"-light")
				view.Dark = true
				p.Look(view)
				readable(t, p)
				keep(t, p, row.name+"-dark")
				if said := p.Said(); len(said) > 0 {
					t.Errorf("the page says %q", said)
				}
			})
		}
	})

	// The state of the connection depends mainly on two times: the last update, and the last
	// try to connect.
	t.Run("contact", func(t *testing.T) {
		t.Parallel()
		p := b.Open(t, "http://"+small+"/", browser.View{Width: wide, Height: 800})
		p.Until(`document.querySelector('#link[data-state=connected]')`)
		for _, row := range []struct {
			now  int
			seen string
			want string
		}{
			{1300, `heard: 0, opened: 0`, "connecting 1"},
			{1300, `heard: 10, opened: 0`, "connected 1"},
			{3900, `heard: 10, opened: 0`, "connected 4"},
			{4100, `heard: 0, opened: 0`, "lost 4"},
			{12_000, `heard: 0, opened: 0, failed: true`, "lost 12"},
			{1300, `heard: 0, opened: 0, failed: true`, "connecting 1"},
			{2100, `heard: 0, opened: 0, failed: true`, "lost 2"},
			{600_000, `heard: 0, opened: 599000`, "connecting 600"},
			{600_000, `heard: 0, opened: 599000, failed: true`, "lost 600"},
			{602_000, `heard: 0, opened: 599000`, "lost 602"},
			{3000, `heard: 0, opened: 0, failed: true, refused: true`, "refused 3"},
			{600_000, `heard: 0, opened: 0, hidden: true`, "asleep 600"},
			{11, `heard: 10, opened: 0`, "connected 1"},
		} {
			var got string
			p.Eval(fmt.Sprintf(`(c => c.state + ' ' + c.silent)(contact(%d, {failed: false, refused: false, hidden: false, %s}))`, row.now, row.seen), &got)
			if got != row.want {
				t.Errorf("at %d, %s: %s, want %s", row.now, row.seen, got, row.want)
			}
		}
		for seconds, want := range map[int]string{1: "1\u00a0s", 59: "59\u00a0s", 61: "1\u00a0min\u00a01\u00a0s", 3599: "59\u00a0min\u00a059\u00a0s", 7260: "2\u00a0h\u00a01\u00a0min"} {
			var got string
			p.Eval(fmt.Sprintf(`lasting(%d)`, seconds), &got)
			if got != want {
				t.Errorf("%d: %s, want %s", seconds, got, want)
			}
		}
		const heard = ` This page shows the node's state at 10:32:05.`
		for _, row := range []struct{ state, known, want string }{
			{"lost", `{until: '10:47:08 UTC', had: '15m3s', longer: 'it reaches ZooKeeper'}`, "Lost contact with this node 12\u00a0s ago." + heard +
				"|If the node still runs, it serves at least until 10:47:08 UTC, and longer if it reaches ZooKeeper. It had 15m3s left at the last update." +
				"|Check whether the process runs and whether the network reaches it."},
			{"lost", `{until: '', had: '', longer: ''}`, "Lost contact with this node 12\u00a0s ago." + heard + "||Check whether the process runs and whether the network reaches it."},
			{"lost", `undefined`, "Lost contact with this node 12\u00a0s ago." + heard + "||Check whether the process runs and whether the network reaches it."},
			{"refused", `{until: '10:47:08 UTC'}`, "No updates from this node for 12\u00a0s." + heard +
				"|The node answers, but does not update this page.|Close other status pages of this node, then reload this one."},
			{"connecting", `{until: '10:47:08 UTC'}`, "Connecting. The last update from this node came 12\u00a0s ago." + heard + "||"},
		} {
			var got string
			p.Eval(fmt.Sprintf(`(w => [w.lost, w.meanwhile, w.todo].join('|'))(lostWords(%q, 12, '10:32:05', %s))`, row.state, row.known), &got)
			if got != row.want {
				t.Errorf("%s, %s: %s\nwant %s", row.state, row.known, got, row.want)
			}
		}
	})

	// Ages stay right when one of the browser's clocks is set back, or stops while the
	// machine sleeps.
	t.Run("its clock", func(t *testing.T) {
		t.Parallel()
		p := b.Open(t, "http://"+small+"/", browser.View{Width: wide, Height: 800})
		p.Until(`document.querySelector('#link[data-state=connected]')`)
		var passed [3]float64
		p.Eval(`(() => {
			const [now, wall, steady] = [Date.now, Date.now(), performance.now()];
			performance.now = () => steady; // as in a machine that sleeps
			Date.now = () => wall;
			const began = clock();
			Date.now = () => wall + 600000;
			const slept = clock() - began;
			Date.now = () => wall - 600000;
			const back = clock() - began;
			performance.now = () => steady + 1000;
			const then = clock() - began;
			Date.now = now;
			delete performance.now;
			return [slept, back, then];
		})()`, &passed)
		if passed != [3]float64{600_000, 600_000, 601_000} {
			t.Errorf("%v", passed)
		}
	})

	// The node ends, and comes back at its address. Meanwhile the banner is at the top.
	t.Run("lost and found", func(t *testing.T) {
		t.Parallel()
		addr, stop := start(t, picture(32, 20))
		p := b.Open(t, "http://"+addr+"/", browser.View{Width: 390, Height: 844})
		p.Until(`document.querySelector('#link[data-state=connected]') && document.querySelector('#contact').hidden`)
		stop()
		p.Until(`/^Lost contact with this node \d+\u00a0s ago\. This page shows the node's state at \d\d:\d\d:\d\d\.$/.test(document.querySelector('#lost').textContent)`)
		readable(t, p)
		var first, title string
		p.Eval(`[...document.querySelector('main').children].find(e => e.getClientRects().length).id`, &first)
		p.Eval(`document.title`, &title)
		// Only what is known now is large and bold.
		var headline string
		p.Eval(`[...document.querySelectorAll('#contact *, #first *')].filter(e => e.getClientRects().length && getComputedStyle(e).fontSize === '25.6px').map(e => e.innerText).join('|')`, &headline)
		if headline != "State unknown" {
			t.Errorf("in the large size: %q", headline)
		}
		var bold []string
		p.Eval(`[...document.querySelectorAll('#first *')].filter(e => e.getClientRects().length && getComputedStyle(e).fontWeight > 400).map(e => e.innerText)`, &bold)
		past := p.Text("#first")
		if len(bold) > 0 || !strings.Contains(past, "Was serving IDs") || strings.Contains(past, "Serving IDs") ||
			!strings.Contains(past, "Wrong in the cluster, as last seen") || strings.Contains(past, "What is wrong") {
			t.Errorf("%q are bold in what was before:\n%s", bold, past)
		}
		if first != "contact" || title != "no contact: ids-3 · flaked" {
			t.Errorf("first is %s, the title %s", first, title)
		}
		p.Until(`parseInt(document.querySelector('#lost').textContent.match(/\d+/)) >= 5`) // goes up
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(whole(picture(32, 20)))
		if err != nil {
			t.Fatal(err)
		}
		serveOn(t, s, l)
		p.Until(`document.querySelector('#link[data-state=connected]') && document.querySelector('#contact').hidden`)
	})

	// A node that answers, but updates no more pages, says so.
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		addr, _ := start(t, picture(4, 2))
		for range maxStreams / 2 {
			follow(t, "http://"+addr+"/page/live")
		}
		p := b.Open(t, "http://"+addr+"/", browser.View{Width: wide, Height: 800})
		p.Until(`document.querySelector('#link[data-state=refused]') && document.querySelector('#do').textContent.includes('Close other status pages of this node')`)
	})

	// A page of another site, or of another port of this machine, cannot make the node
	// issue IDs, whichever kind of request it uses.
	t.Run("another site", func(t *testing.T) {
		t.Parallel()
		cfg := whole(picture(4, 2))
		var made atomic.Int64
		reserve := cfg.Reserve
		cfg.Reserve = func(ctx context.Context, n int) (worker.Run, error) { made.Add(1); return reserve(ctx, n) }
		cfg.Loopback = true
		addr, _ := start(t, cfg)
		_, port, _ := net.SplitHostPort(addr)
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>elsewhere</title><body>")
		}))
		defer elsewhere.Close()
		p := b.Open(t, elsewhere.URL, browser.View{Width: wide, Height: 800})
		p.Until(`document.title === 'elsewhere' && document.body`)
		for _, host := range []string{"127.0.0.1", "localhost"} { // another port, and another site
			for _, path := range []string{"/v1/ids?n=10000", "/api/snowflake/get/x"} {
				p.Eval(fmt.Sprintf(`(async url => {
					await fetch(url, {mode: 'no-cors'}).catch(() => {});
					await fetch(url, {mode: 'no-cors', method: 'POST', body: 'x'}).catch(() => {});
					await fetch(url).catch(() => {});
					await new Promise(done => { const i = new Image(); i.onload = i.onerror = done; i.src = url; });
					await new Promise(done => { const f = document.createElement('iframe'); f.onload = f.onerror = done; f.src = url; document.body.append(f); });
				})('http://%s:%s%s')`, host, port, path), nil)
			}
		}
		if n := made.Load(); n != 0 {
			t.Errorf("IDs were made %d times", n)
		}
		// The node's own page can, and a link from the other page opens it.
		p.Eval(fmt.Sprintf(`location.href = 'http://%s/'`, addr), nil)
		p.Until(`document.querySelector('#link[data-state=connected]')`)
		p.Eval(`fetch('/v1/ids').then(r => r.ok)`, nil)
		if n := made.Load(); n != 1 {
			t.Errorf("by its own page IDs were made %d times", n)
		}
	})

	// The page fits every width while it shows several workers, a refusal and problems.
	t.Run("trouble", func(t *testing.T) {
		t.Parallel()
		cfg := full()
		first := cfg.Workers()[0]
		second := first
		second.Worker, second.Ready = new(9), true
		cfg.Workers = func() []node.Snapshot {
			return []node.Snapshot{first, second, {Name: "ids-1", Phase: node.Starting, Code: "NOTREADY", Cause: "no-worker-yet"}}
		}
		addr, _ := start(t, cfg)
		p := b.Open(t, "http://"+addr, browser.View{Width: wide, Height: 800})
		p.Until(`document.querySelector('#link[data-state=connected]')`)
		readable(t, p)
		for width := 320; width < wide; width += 40 {
			p.Look(browser.View{Width: width, Height: 800, Dark: true})
			var needs int
			p.Eval(`document.documentElement.scrollWidth`, &needs)
			if needs > width {
				t.Errorf("%d wide on %d", needs, width)
			}
		}
		readable(t, p)
		text := p.Text("#first")
		for _, want := range []string{"Not serving IDs", "No time left", "clock went back. It is behind the last ID by 9ms", "Workers 7, 9: This machine's clock leapt 4.0s ahead"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
		keep(t, p, "trouble")
	})

	// Everything can be done with the keyboard, and updates do not move the focus.
	t.Run("keyboard", func(t *testing.T) {
		t.Parallel()
		p := b.Open(t, "http://"+small+"/", browser.View{Width: wide, Height: 800})
		p.Until(`document.querySelector('#link[data-state=connected]')`)
		focus := func(key string, presses int, id string) {
			t.Helper()
			for range presses {
				p.Press(key)
			}
			var got string
			p.Eval(`document.activeElement.id || document.activeElement.className`, &got)
			if got != id {
				t.Errorf("%d times %s: the focus is on %q, want %q", presses, key, got, id)
			}
		}
		focus("Tab", 1, "skip")
		// The links of the table of nodes come first.
		p.Eval(`document.querySelector('a.cell').focus()`, nil)
		focus("ArrowRight", 3, "w3")
		focus("ArrowLeft", 1, "w2")
		focus("End", 1, "w19")
		focus("Home", 1, "w0")
		focus("ArrowRight", 4, "w4")
		p.Press("Enter")
		p.Until(`document.querySelector('#detail').innerText.includes('Worker 4') && location.search === '?worker=4'`)
		p.Eval(`document.querySelector('#w4').was = true`, nil)
		p.Until(`!document.querySelector('#map').firstElementChild.was`)
		focus("Tab", 0, "w4")
		focus("Tab", 1, "worker")
		p.Eval(`document.querySelector('#id').focus()`, nil)
		p.Type("x")
		p.Until(`document.querySelector('#decoded .bad')`)
		p.Press("Backspace")
		p.Type("2123840322550104099")
		p.Until(`document.querySelectorAll('#decoded .bits li').length === 4`)
		focus("Tab", 0, "id")
	})

	// The browser sends the password of the page's address with every further request.
	t.Run("with a token", func(t *testing.T) {
		t.Parallel()
		cfg := picture(32, 20)
		cfg.Authenticate = func(token []byte) (*sequence.Rights, bool) { return nil, string(token) == "secret" }
		addr, _ := start(t, cfg)
		p := b.Open(t, "http://me:secret@"+addr+"/", browser.View{Width: wide, Height: 800})
		p.Until(`document.querySelector('#link[data-state=connected]')`)
		p.Eval(`document.querySelector('#id').focus()`, nil)
		p.Type("2123840322550104099")
		p.Until(`document.querySelectorAll('#decoded .bits li').length === 4`)
	})

	// Without scripts the browser shows the same page, and reloads it.
	t.Run("without scripts", func(t *testing.T) {
		t.Parallel()
		p := b.Open(t, "http://"+small+query, browser.View{Width: narrow, Height: 800, NoScript: true})
		p.Until(`document.readyState === 'complete' && document.querySelector('#h-nodes')`)
		text := p.Text("body")
		for _, want := range []string{"Serving IDs", "worker 1 (ids-1) is disconnected", "1h0m ± 0.5ms slow", "reloads every 5 s", "number 35 of its tick", "Worker 4", "clock offset is large"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		keep(t, p, "noscript")
		p.Eval(`document.body.id = 'old'`, nil)
		p.Until(`document.body.id !== 'old' && document.querySelector('#h-nodes')`)
	})
}

// unreadable returns text whose contrast is below 4.5:1, or below 3:1 if it is large, and
// controls without a name.
const unreadable = `(() => {
  const light = c => c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const rgb = s => s.match(/[\d.]+/g).map(Number);
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const style = getComputedStyle(e);
    if (!own || e.closest('noscript, .skip, thead') || !e.getClientRects().length) continue;
    let at = e, ground = null;
    for (; at; at = at.parentElement) {
      const s = getComputedStyle(at), c = rgb(s.backgroundColor);
      if (c.length < 4 || c[3] === 1) { ground = c; break; }
    }
    const [a, b] = [light(rgb(style.color).slice(0, 3)), light((ground || [255, 255, 255]).slice(0, 3))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) found.push(e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 20) + ' ' + ratio.toFixed(2));
  }
  for (const e of document.querySelectorAll('input:not([type=hidden])')) if (!e.labels.length) found.push(e.id + ' has no label');
  for (const e of document.querySelectorAll('a, button, svg[role=img]')) if (!(e.getAttribute('aria-label') || e.textContent.trim())) found.push(e.outerHTML.slice(0, 60) + ' has no name');
  return [...new Set(found)];
})()`

func readable(t *testing.T, p *browser.Tab) {
	t.Helper()
	var found []string
	p.Eval(unreadable, &found)
	if len(found) > 0 {
		t.Errorf("%q", found)
	}
}
