package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
)

var (
	quoted   = regexp.MustCompile(`"[^"<>]*"`)
	ofOthers = regexp.MustCompile(`(?i)<script>|<img|<[^>]* (on[a-z]+|style)=`)
)

// foreign returns markup that the page's templates do not contain: scripts, images, event
// handlers and style attributes.
func foreign(page string) string { return ofOthers.FindString(quoted.ReplaceAllString(page, `""`)) }

// The page is complete without a script, and text that others wrote is escaped.
func TestPageWithoutScript(t *testing.T) {
	addr, _ := start(t, picture(32, 20))
	code, header, body := do(t, "GET", "http://"+addr+"/?worker=4&id=2123840322550104099")
	if code != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" || header.Get("Content-Security-Policy") != contentPolicy {
		t.Errorf("%d %v", code, header)
	}
	if found := foreign(body); found != "" {
		t.Errorf("%s", found)
	}
	for _, want := range []string{
		`<noscript><meta http-equiv="refresh" content="5"></noscript>`, "cluster orders", "Serving IDs", "worker 1 (ids-1) is disconnected", "worker 5: heartbeat overdue. Wait a few seconds.",
		"23h53m", "812ms ago", `id="w19"`, "<b>14</b>", "Worker 4</h3>", "&lt;script&gt;", "1h0m ± 0.5ms slow", "10.0.0.7:7609",
		"2026-11-20T18:06:06.598Z", "number 35 of its tick", "clock offset is large", "IDs end on 2080-07-10",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(body, "cannot render") {
		t.Error(body)
	}
}

func TestPageRendersWithMissingData(t *testing.T) {
	for name, cfg := range map[string]Config{
		"nothing is known": {},
		"all is wrong":     full(),
		"ZooKeeper is away": {
			Slots: func(context.Context) (clusterview.Report, error) {
				return clusterview.Report{}, errors.New("ZooKeeper <is> away")
			},
			Ready:   func() error { return errors.New("-NOTREADY starting reason=no-worker-yet") },
			Workers: func() []node.Snapshot { return nil },
		},
		"a huge cluster": {Slots: func(context.Context) (clusterview.Report, error) {
			s := clusterview.Report{Summary: clusterview.Summary{Slots: 1 << 22, Used: 3, Live: 3}}
			for _, w := range []int{0, 5000, 4_000_000} {
				s.Workers = append(s.Workers, clusterview.WorkerReport{Worker: w, State: "live", ClockOffsetMs: new(1.0)})
			}
			return s, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := start(t, cfg)
			for _, path := range []string{"/", "/?worker=7&id=x", "/?worker=x&id=99999999999999999999", "/?worker=-1"} {
				code, _, body := do(t, "GET", "http://"+addr+path)
				if code != 200 || strings.Contains(body, "cannot render") || !strings.Contains(body, "</html>") {
					t.Errorf("%s: %d %s", path, code, body)
				}
				if len(body) > 400_000 {
					t.Errorf("%s: %d bytes", path, len(body))
				}
			}
		})
	}
}

// parts reads one event of a stream, and returns the HTML of its parts by name.
func parts(t *testing.T, r *bufio.Reader) map[string]string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var got map[string]string
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			return got
		}
	}
}

func follow(t *testing.T, url string) *bufio.Reader {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(mustRequest(url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	return bufio.NewReader(res.Body)
}

func TestStreamSendsOnlyChangedParts(t *testing.T) {
	cfg := picture(32, 20)
	cfg.Sequences = someSequences
	addr, stop := start(t, cfg)
	stream := follow(t, "http://"+addr+"/page/live?worker=4")
	first := parts(t, stream)
	for _, name := range append([]string{"detail"}, common...) {
		if first[name] == "" || foreign(first[name]) != "" {
			t.Errorf("%s: %s", name, first[name])
		}
	}
	cfg.Events.Accept("flaked.node", 4, "something <new>")
	for {
		next := parts(t, stream)
		if strings.Contains(next["events"], "something &lt;new&gt;") {
			break
		}
	}
	if _, again := parts(t, stream)["events"]; again {
		t.Error("what has not changed is sent again")
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > time.Second {
		t.Errorf("a page that is open delays the end by %v", took)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	addr, _ := start(t, picture(4, 2))
	for range maxStreams / 2 {
		follow(t, "http://"+addr+"/page/live")
	}
	code, header, body := do(t, "GET", "http://"+addr+"/page/live")
	if code != 503 || header.Get("Retry-After") == "" || !strings.Contains(body, "the limits are 16 per node and 8 per address") {
		t.Errorf("%d %v %s", code, header, body)
	}
	for _, path := range []string{"/", "/v1/status"} {
		if code, _, _ := do(t, "GET", "http://"+addr+path); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, _, _ := do(t, "HEAD", "http://"+addr+"/page/live"); code != 405 {
		t.Errorf("by HEAD: %d", code)
	}
	other := from(t, addr, "127.0.0.2")
	if res := other.ask("GET /page/live HTTP/1.1\r\nHost: localhost\r\n\r\n"); res.StatusCode != 200 {
		t.Errorf("from another address: %s", res.Status)
	}
}

// pipes is a listener of in-memory connections. Sockets do not work in a synctest bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A stream lasts longer than the timeouts of requests. A client that does not read is
// disconnected.
func TestStreamOutlivesTimeoutsAndDropsSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(whole(picture(4, 2)))
		if err != nil {
			t.Fatal(err)
		}
		l := pipes{make(chan net.Conn), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, l) }()
		ours, theirs := net.Pipe()
		l.conns <- theirs
		if _, err := io.WriteString(ours, "GET /page/live HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(ours), nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		stream := bufio.NewReader(res.Body)
		for began := time.Now(); time.Since(began) < 3*writeTimeout; {
			parts(t, stream)
		}
		if n := len(s.pages.streams.all); n != 1 {
			t.Errorf("%d streams", n)
		}
		time.Sleep(liveWrite + 3*time.Second) // reads nothing
		synctest.Wait()
		if n := len(s.pages.streams.all); n != 0 {
			t.Error("it waits for who does not read")
		}
		ours.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// While a page is open, the slots are read often. While none is, they are read seldom, and
// in a large cluster not at all.
func TestOpenPageIsReadOften(t *testing.T) {
	for _, row := range []struct {
		name       string
		used, live int
		watch      bool
		every      time.Duration // 0: never
		unread     bool          // nobody has asked before
	}{
		{name: "a thousand that have just started", used: 1024, live: 1024, unread: true},
		{name: "a few that have just started", used: 5, live: 5, unread: true, every: slotsEvery},
		{name: "watched", used: 5, live: 5, watch: true, every: watchedEvery},
		{name: "watched, many", used: 1024, live: 1000, watch: true, every: 2048 * time.Millisecond},
		{name: "not watched", used: 5, live: 5, every: slotsEvery},
		{name: "not watched, some", used: 50, live: 40, every: 40 * time.Second},
		{name: "not watched, many", used: 100, live: 100},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads := 0
				c := newSlots(func(context.Context) (clusterview.Report, error) {
					reads++
					return clusterview.Report{Summary: clusterview.Summary{Used: row.used, Live: row.live}}, nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); c.run(ctx) }()
				if !row.unread {
					c.get()
				}
				synctest.Wait()
				const tick = 50 * time.Millisecond
				for range 10 * time.Minute / tick {
					if row.watch {
						c.watch()
						c.get()
					} else {
						c.idle(row.used)
					}
					synctest.Wait()
					time.Sleep(tick)
				}
				synctest.Wait()
				want := 0
				if !row.unread || row.every > 0 {
					want = 1
				}
				if row.every > 0 {
					want += int(10 * time.Minute / row.every)
				}
				if math.Abs(float64(reads-want)) > float64(want)/50+1 || want == 0 && reads > 0 {
					t.Errorf("%d readings in 10 minutes, want %d", reads, want)
				}
				cancel()
				<-done
			})
		})
	}
}

// The history is ten minutes long, and keeps the largest offset of merged readings.
func TestHistoryKeepsTenMinutesAndLargestOffsets(t *testing.T) {
	var p past
	began := time.Unix(0, 0)
	slots := func(ms float64) clusterview.Report {
		return clusterview.Report{Workers: []clusterview.WorkerReport{{Worker: 2, ClockOffsetMs: &ms}, {Worker: 3}, {Worker: maxTraced + 5, ClockOffsetMs: &ms}}}
	}
	for i := range 1200 {
		at := began.Add(time.Duration(i) * time.Second)
		ms := 1.0
		if i == 1001 {
			ms = -700
		}
		p.noteClocks(at, slots(ms), i < 1100 || i > 1110)
		p.note(at, lineproto.Counters{IDs: int64(i)}, 0)
	}
	samples, clocks := p.all()
	if n := len(clocks); n < 115 || n > 125 {
		t.Errorf("%d moments", n)
	}
	if n := len(samples); n != 601 {
		t.Errorf("%d samples", n)
	}
	gaps, worst := 0, 0.0
	for _, c := range clocks {
		if c.ms == nil {
			gaps++
			continue
		}
		if len(c.ms) != 4 || c.ms[3] == c.ms[3] {
			t.Fatalf("%v", c.ms)
		}
		worst = min(worst, float64(c.ms[2]))
	}
	if gaps != 1 || worst != -700 {
		t.Errorf("%d gaps, worst %v", gaps, worst)
	}
	v := clockChart(clocks, []slotView{{WorkerReport: clusterview.WorkerReport{Worker: 2}}}, began.Add(1200*time.Second))
	if len(v.Lines) != 1 || len(v.Lines[0].Points) != 2 || len(v.Limits) != 2 {
		t.Errorf("%+v", v)
	}
}

func TestOffsetLevel(t *testing.T) {
	for ms, want := range map[float64]float64{
		0: 0, 0.5: 0.5, -0.5: -0.5, 1: 1, 10: 2, -100: -3, 1000: 4, math.Sqrt(10): 1.5, 3_600_000: 8, -1e300: -11,
	} {
		if got := offsetLevel(ms); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", ms, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	ends := []float64{64e-6, 128e-6, 2}
	for _, row := range []struct {
		n      []int64
		q      float64
		wanted string
	}{
		{[]int64{0, 0, 0, 0}, 0.5, "–"},
		{[]int64{1, 0, 0, 0}, 0.99, "≤ 64 µs"},
		{[]int64{98, 2, 0, 0}, 0.99, "≤ 128 µs"},
		{[]int64{0, 0, 1, 0}, 0.5, "≤ 2.0 s"},
		{[]int64{0, 0, 0, 1}, 0.5, "≤ 2.0 s"},
		{nil, 0.5, "–"},
	} {
		if got := quantile(row.n, ends, row.q); got != row.wanted {
			t.Errorf("%v %v: %s, want %s", row.n, row.q, got, row.wanted)
		}
	}
}

func TestClockWords(t *testing.T) {
	for _, row := range []struct {
		ms, uncertain float64
		want          string
	}{
		{-3_600_000, 1, "1h0m ± 1ms slow"},
		{1.2, 0.5, "1.2ms ± 0.5ms fast"},
		{1.2, 1.2, "+1.2ms ± 1.2ms"},
		{-1.2, 3, "-1.2ms ± 3ms"},
		{0, 0, "0ms ± 0ms"},
	} {
		if got := clockWords(row.ms, row.uncertain); got != row.want {
			t.Errorf("%v ± %v: %s, want %s", row.ms, row.uncertain, got, row.want)
		}
	}
}

func TestWrapAfterCommas(t *testing.T) {
	for text, want := range map[string]string{"": "", "worker=10": "worker=10", "a=1,b=2,<i>": "a=1,<wbr>b=2,<wbr>&lt;i&gt;"} {
		if got := string(wrapAfterCommas(text)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
