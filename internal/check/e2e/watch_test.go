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

// watch is a client that asks a node for one ID every millisecond. It records the refusals and the
// longest time without an ID.
type watch struct {
	node *node
	stop func() // idempotent; waits until the watch has ended
	done chan struct{}

	mu       sync.Mutex // guards the fields below
	answered int
	refused  []string
	broken   []error       // connections that failed; none may while the process runs
	gap      time.Duration // longest time from one ID to the next
	last     time.Time     // when the last ID was received
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
		// IDs of one connection increase only within a worker. A node that has acquired
		// another worker may issue lower ones.
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

// serves waits until the watch has received more than five further IDs.
func (w *watch) serves() {
	w.node.site.t.Helper()
	count := func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.answered }
	before := count()
	w.node.until("IDs for the watch", func() bool { return count() > before+5 })
}

// ends ends the watch. It fails the test if a connection failed, or if a refusal matches none
// of the regular expressions.
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

// These match the refusals because of the clock, as docs/protocol.md documents them.
const (
	behindLastID = `-CLOCK the clock is behind the last ID behind_ms=\d+ retry_after_ms=\d+`
	wrongClock   = `-CLOCK most voters say that this node's clock is wrong offset_ms=-?\d+`
	// These match the error of a start that is refused because of the clock.
	wrongAtStart = `the clock differs by \S+ from ZooKeeper and peers \(\d of \d voters say so, 5s is allowed\)\. Set it right`
)

// refusesLike waits until the node refuses both GET and READY with a text that matches the regular
// expression. It returns the numbers in the refusal of GET.
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

// startIsRefused starts the node, which must refuse to start because its clock is wrong
// compared with ZooKeeper and the peers. The node must exit with 1 and a message that matches,
// issue no ID, and leave its state and its slot unchanged. On a busy machine ZooKeeper may
// answer so late that the node starts from its directory alone. startIsRefused tries again
// then, up to ten times.
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
		if _, err := os.Stat(n.dir); err == nil { // it has run before
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
			millis(now.LeaseUntil-slot.LeaseUntil).Abs() > 2*time.Second { // a killed process's last heartbeat may come late
			t.Errorf("%s: the refusal has changed the slot from %+v to %+v", n.name, slot, now)
		}
		return
	}
	t.Fatalf("%s: ZooKeeper never answered in time", n.name)
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// report waits until each node has made five more heartbeats. A node needs three to find that
// its clock is wrong.
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

// time returns the time of the clock by which the node makes IDs.
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

// goesBy waits until the clock by which the node makes IDs has the offset, within 20 ms.
func (n *node) goesBy(offset time.Duration) {
	n.site.t.Helper()
	n.until("it goes by a clock "+offset.String()+" off", func() bool {
		before := time.Now()
		got := n.time()
		const exact = 20 * time.Millisecond
		return got.After(before.Add(offset-exact)) && got.Before(time.Now().Add(offset+exact))
	})
}

// made fails the test unless the ID's timestamp is within 5 s of the current time plus offset.
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

// ends must find the violation in each row that has one.
func TestWatchFindsUnexpectedRefusals(t *testing.T) {
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
		{"another", []string{"-CLOCK most voters say that this node's clock is wrong offset_ms=-3", "-FENCED x"}, nil, []string{wrongClock}, true},
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
