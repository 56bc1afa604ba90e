package admin

import (
	"context"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/browser"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
)

var screenshots = flag.String("screenshots", "", "a directory for pictures of the status page")

// hostile is a name that somebody wrote to ZooKeeper.
const hostile = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">"'`

// picture is a process and a cluster with something of everything.
func picture(total, held int) Config {
	began := time.Now()
	events := NewEvents(nil)
	events.Accept("flaked.node", hclog.Info, "serving", "worker", 3, "term", 7, "lease_left", "24h0m0s")
	events.Accept("flaked.node", hclog.Warn, "clocks differ", "worst", "1h0m0s", "against", 1)
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
				Name: "ids-3", Worker: new(3), Term: 7, Phase: node.Serving, Ready: true, Settled: true, NowMs: now,
				LeaseLeftMs: new(int64(86_000_000)), LeaseEndsMs: new(now + 86_000_000), ReservedLeftMs: new(int64(2_731)),
				Clock:     node.ClockSnapshot{OffsetMs: new(0.5), ErrorMs: new(2.0), WorstMs: new(1.5), WorstErrorMs: new(2.0), Voters: 5},
				ZooKeeper: node.ZooKeeperSnapshot{OK: true, Session: true, HeartbeatAgeMs: new(int64(812)), HeartbeatMs: 3000},
				Disk:      node.DiskSnapshot{OK: true},
				Cluster: node.ClusterSnapshot{
					Name: "orders", UUID: "624812a4", Layout: "time=41@1ms,worker=10,sequence=12,epoch=1288834974657", Slots: total, EpochEndsMs: new(int64(3487858230209)),
				},
			}}
		},
		Counters: func() lineproto.Counters { return busy(time.Since(began)) },
		Slots: func(context.Context) (Slots, error) {
			s := Slots{Total: total, Used: held, Live: held, ByState: map[string]int{}, Problems: []string{"worker 1 (ids-1) is detached, its node not connected to ZooKeeper: start it again"}}
			phase := time.Since(began).Seconds()
			for w := range held {
				one := Slot{
					Worker: w, Name: name(w), Node: "18b34979-0000-4000-8000-000000000000", Host: "h", Address: fmt.Sprintf("10.0.%d.%d:7609", w/250, w%250),
					PID: 42, Version: "1.2.3", State: "live", Phase: "serving", Term: int64(w%5 + 1), Settled: true, HeartbeatMs: 3000,
					OffsetMs: new(3 * math.Sin(phase/3+float64(w))), ErrorMs: new(0.5), LeaseLeftMs: new(int64(86_000_000)), ReportAgeMs: new(int64(1200)),
				}
				switch {
				case w == 2:
					one.OffsetMs, one.Phase = new(-3_600_000.0), "refusing"
				case w == 5:
					one.ReportAgeMs = new(int64(4100))
				case w%7 == 1:
					one.State, one.OffsetMs = "detached", nil
				case w%11 == 6:
					one.State, one.OffsetMs = "stopped", nil
				case w%13 == 8:
					one.State, one.OffsetMs = "cooling", nil
				case w%17 == 9:
					one.State, one.OffsetMs = "lost", nil
				}
				s.ByState[one.State]++
				s.Workers = append(s.Workers, one)
			}
			s.ByState["free"] = total - held
			return s, nil
		},
	}
}

// busy is what a node has done that is asked now more, now less.
func busy(d time.Duration) lineproto.Counters {
	n := 40_000 * int64(1e6+60*d.Seconds()+1500*math.Sin(d.Minutes()))
	return lineproto.Counters{
		Durations: lineproto.Histogram{Bounds: []float64{64e-6, 128e-6, 256e-6}, N: []int64{n * 90, n * 9, n, 0}},
		ConnsOpen: 12, ConnsTotal: 40, IDs: n / 10, Requests: []lineproto.RequestCount{{Command: "GET", Result: "OK", N: n / 100}},
	}
}

// keep writes a picture, for people who want to look.
func keep(t *testing.T, p *browser.Tab, name string) {
	t.Helper()
	if *screenshots != "" {
		p.Screenshot(filepath.Join(*screenshots, name+".png"))
	}
}

// aged serves as if it had done so for a while.
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
			if w.OffsetMs != nil {
				*w.OffsetMs = 20 * math.Sin(back.Minutes()*float64(i%5+1)/2+float64(i))
			}
			if w.Worker == 2 && back < 3*time.Minute {
				*w.OffsetMs = -3_600_000
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
	for _, row := range []struct {
		name, addr string
		cells      int
		view       browser.View
	}{
		{"desktop", small, 32, browser.View{Width: 1280, Height: 900}},
		{"phone", small, 32, browser.View{Width: 360, Height: 740}},
		{"desktop-1024", large, 1024, browser.View{Width: 1280, Height: 900}},
		{"phone-1024", large, 1024, browser.View{Width: 360, Height: 740}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := b.Open("http://"+row.addr+"/?worker=4&id=2123840322550104099", row.view)
			p.Until(`document.querySelector('#link.ok')`)
			var cells, wide int
			p.Eval(`document.querySelectorAll('.cells .cell').length`, &cells)
			p.Eval(`document.documentElement.scrollWidth`, &wide)
			if cells != row.cells || wide > row.view.Width {
				t.Errorf("%d cells, want %d; %d wide on %d", cells, row.cells, wide, row.view.Width)
			}
			if text := p.Text("#detail"); !strings.Contains(text, hostile) {
				t.Errorf("the name is not as it is: %s", text)
			}
			keep(t, p, row.name+"-light")
			row.view.Dark = true
			p.Look(row.view)
			keep(t, p, row.name+"-dark")
			if said := p.Said(); len(said) > 0 {
				t.Errorf("the page says %q", said)
			}
		})
	}
}
