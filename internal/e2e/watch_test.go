package e2e

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/worker"
)

// watch is a client that asks a node for one ID every millisecond and keeps
// what it was refused with, and how long it went without.
type watch struct {
	node *node
	stop func() // idempotent, and returns when it has ended
	done chan struct{}

	mu       sync.Mutex // guards what follows
	answered int
	refused  []string
	broken   []error       // connections that failed: none may, of a process that lives
	gap      time.Duration // the longest from one answer to the next
	last     time.Time     // when the last one came
}

func (n *node) watch() *watch {
	w := &watch{node: n, done: make(chan struct{}), last: time.Now()}
	stop := make(chan struct{})
	var once sync.Once
	w.stop = func() {
		once.Do(func() { close(stop) })
		<-w.done
	}
	go func() {
		defer close(w.done)
		w.run(stop)
	}()
	n.site.t.Cleanup(w.stop)
	return w
}

func (w *watch) run(stop <-chan struct{}) {
	c, err := w.node.dial()
	if err != nil {
		w.note(nil, err)
		return
	}
	defer c.close()
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for last := worker.ID(0); ; {
		select {
		case <-stop:
			return
		case <-pace.C:
		}
		// IDs of one connection grow as long as they are of one worker: a node that
		// took another may have lower ones.
		c.last = 0
		ids, err := c.get(1)
		w.note(ids, err)
		if h := w.node.site.ids; err == nil {
			if h.worker(ids[0]) == h.worker(last) && ids[0] <= last {
				w.node.site.t.Errorf("%s: %s after %s on one connection", w.node.name, h.describe(ids[0]), h.describe(last))
			}
			last = ids[0]
		}
		var no refusal
		if err != nil && !errors.As(err, &no) {
			return
		}
	}
}

func (w *watch) note(ids []worker.ID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var no refusal
	switch {
	case err == nil:
		w.answered += len(ids)
		w.gap = max(w.gap, time.Since(w.last))
		w.last = time.Now()
	case errors.As(err, &no):
		w.refused = append(w.refused, string(no))
	default:
		w.broken = append(w.broken, err)
	}
}

func (w *watch) refusals() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.refused)
}

// serves waits until the node answers the watch with IDs again.
func (w *watch) serves() {
	w.node.site.t.Helper()
	count := func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.answered }
	before := count()
	w.node.until("IDs for the watch", func() bool { return count() > before+5 })
}

// ends ends the watch, and fails the test for a refusal that is like none of
// these, and for connections that failed.
func (w *watch) ends(like ...string) {
	t := w.node.site.t
	t.Helper()
	w.stop()
	allowed := regexp.MustCompile("^(" + strings.Join(like, "|") + ")$")
	said := map[string]int{}
	for _, text := range w.refused {
		if len(like) == 0 || !allowed.MatchString(text) {
			t.Errorf("%s: refused with %q", w.node.name, text)
			break
		}
		said[numbers.ReplaceAllString(text, "N")]++
	}
	for _, err := range w.broken {
		t.Errorf("%s: a connection failed: %v", w.node.name, err)
	}
	t.Logf("%s: %d IDs, longest without %s, refusals %v", w.node.name, w.answered, w.gap.Round(time.Millisecond), said)
}

var numbers = regexp.MustCompile(`-?\d+`)

// What a node says when it refuses for its clock, as docs/protocol.md has it.
const (
	behindLastID = `-CLOCK the clock is behind the last ID behind_ms=\d+ retry_after_ms=\d+`
	wrongClock   = `-CLOCK this node's clock is wrong by most voters offset_ms=-?\d+`
	// How a start ends that is refused for it.
	wrongAtStart = `the clock is \S+ off by ZooKeeper's clock and peers \(\d of \d voters say so, 5s is tolerated\): set it right`
	farFromM     = `the clock is \S+ behind what this worker may have issued already, more than the 10s that are waited for: set the clock right`
)

// refusesLike waits until the node refuses a GET, and a READY, with what is like this,
// and returns the numbers in it.
func (n *node) refusesLike(like string) []string {
	n.site.t.Helper()
	whole := regexp.MustCompile("^(" + like + ")$")
	var get, ready error
	n.until("GET and READY are refused with "+like, func() bool {
		c, err := n.dial()
		if err != nil {
			return false
		}
		defer c.close()
		_, get = c.get(1)
		_, ready = c.ask("READY")
		return get != nil && ready != nil && whole.MatchString(get.Error()) && whole.MatchString(ready.Error())
	})
	return numbers.FindAllString(get.Error(), -1)
}

// startIsRefused starts the node, which has to end by what ZooKeeper and the
// peers say of its clock: with a message like this, no ID, and its state and its
// slot as they were. A ZooKeeper that takes too long to answer, because the
// machine is busy, lets a node start without it, which is another scenario:
// then it is tried again.
func (n *node) startIsRefused(message string) {
	t := n.site.t
	t.Helper()
	if n.site.admin == nil {
		n.site.admin = n.site.records()
	}
	records := n.site.admin
	for range 10 {
		var slot coordinator.Slot
		var before stateReport
		if _, err := os.Stat(n.dir); err == nil { // else it has never run
			before = n.stored()
		}
		if before.Record != nil {
			slot = records.slot(before.Record.Worker)
		}
		clients := n.start().clients(1)
		alone := func() bool { return strings.Contains(n.proc.log(), "starting from the state directory alone") }
		within(patience, func() bool { return !n.proc.running() || alone() })
		answered := clients.end().answered
		if alone() {
			t.Logf("%s: ZooKeeper did not answer in time: again", n.name)
			n.kill()
			continue
		}
		n.fails(1, message)
		if answered != 0 {
			t.Errorf("%s: it answered %d IDs before it ended", n.name, answered)
		}
		after := n.stored()
		if before.Record == nil && after.Record == nil {
			return
		}
		if before.Record == nil || after.Record == nil || *after.Record != *before.Record {
			t.Errorf("%s: the refusal has changed the state from %+v to %+v", n.name, before.Record, after.Record)
		} else if now := records.slot(before.Record.Worker); now.Term != slot.Term || now.Nonce != slot.Nonce ||
			millis(now.H-slot.H).Abs() > 2*time.Second { // the last heartbeat of a process that was killed may come late
			t.Errorf("%s: the refusal has changed the slot from %+v to %+v", n.name, slot, now)
		}
		return
	}
	t.Fatalf("%s: ZooKeeper never answered in time", n.name)
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// report waits until the nodes have reported to ZooKeeper a few times from now
// on: more often than it takes three rounds to find a clock wrong.
func (s *site) report(nodes ...*node) {
	s.t.Helper()
	records := s.records()
	reports := func(slot string) int32 { stat, _ := records.read(slot, nil); return stat.Version }
	slots, before := make([]string, len(nodes)), make([]int32, len(nodes))
	for i, n := range nodes {
		slots[i] = slotPath(n.worker())
		before[i] = reports(slots[i])
	}
	for i, n := range nodes {
		n.until("five more heartbeats", func() bool { return reports(slots[i]) >= before[i]+5 })
	}
}

// time is the clock that the node makes IDs by.
func (n *node) time() time.Time {
	n.site.t.Helper()
	line, err := n.ask("TIME")
	var s, us int64
	if err == nil {
		_, err = fmt.Sscan(line, &s, &us)
	}
	if err != nil {
		n.site.t.Fatalf("%s: TIME: %q %v", n.name, line, err)
	}
	return time.Unix(s, us*1000)
}

// goesBy waits until the node makes IDs by a clock that is so far off.
func (n *node) goesBy(offset time.Duration) {
	n.site.t.Helper()
	n.until("it goes by a clock "+offset.String()+" off", func() bool {
		before := time.Now()
		got := n.time()
		const exact = 20 * time.Millisecond
		return got.After(before.Add(offset-exact)) && got.Before(time.Now().Add(offset+exact))
	})
}

// made checks that an ID's time is by a clock that is so far off, now.
func (n *node) made(id worker.ID, offset time.Duration) {
	n.site.t.Helper()
	f, err := n.site.ids.layout.Decode(id)
	if err != nil {
		n.site.t.Fatal(err)
	}
	if off := time.Until(n.site.ids.layout.Time(f).Add(-offset)); off.Abs() > 5*time.Second {
		n.site.t.Errorf("%s: %s is %s off a clock that is %s off", n.name, n.site.ids.describe(id), off, offset)
	}
}

// The watch must see what it is there for.
func TestWatchSees(t *testing.T) {
	for _, row := range []struct {
		name    string
		refused []string
		broken  []error
		like    []string
		wrong   bool
	}{
		{"nothing", nil, nil, nil, false},
		{"a refusal where none is right", []string{"-CLOCK x"}, nil, nil, true},
		{"the right one", []string{"-CLOCK the clock is behind the last ID behind_ms=3 retry_after_ms=3"}, nil, []string{wrongClock, behindLastID}, false},
		{"another", []string{"-CLOCK this node's clock is wrong by most voters offset_ms=-3", "-FENCED x"}, nil, []string{wrongClock}, true},
		{"a connection", nil, []error{errPartial}, nil, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			judge := &verdict{TB: t}
			w := &watch{node: &node{site: &site{t: judge}}, refused: row.refused, broken: row.broken, stop: func() {}}
			w.ends(row.like...)
			if judge.wrong != row.wrong {
				t.Errorf("wrong is %v, want %v", judge.wrong, row.wrong)
			}
		})
	}
}
