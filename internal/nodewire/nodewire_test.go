package nodewire

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/memfile"
	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/node"
)

var _ lineproto.Backend = (*Backend)(nil)

// refusals has every kind of refusal, and the reply that a client gets for it.
var refusals = []struct {
	refusal node.Refusal
	wire    string
}{
	{node.Refusal{Cause: node.CauseNoWorkerYet, Phase: node.Starting}, "-NOTREADY starting reason=no-worker-yet"},
	{node.Refusal{Cause: node.CauseZooKeeperUnreachable, Phase: node.Starting}, "-NOTREADY starting reason=zookeeper-unreachable"},
	{node.Refusal{Cause: node.CauseZooKeeperSlow, Phase: node.Starting}, "-NOTREADY starting reason=zookeeper-slow"},
	{node.Refusal{Cause: node.CauseConfirming, Phase: node.Confirming}, "-NOTREADY confirming reason=confirming"},
	{node.Refusal{Cause: node.CauseLeaseExpiredAway, Phase: node.Confirming}, "-NOTREADY confirming reason=lease-expired-while-away"},
	{node.Refusal{Cause: node.CauseNewWorker, Phase: node.Confirming}, "-NOTREADY confirming reason=new-worker-after-rollback"},
	{node.Refusal{Cause: node.CauseBelowFloor, Phase: node.Waiting}, "-NOTREADY waiting reason=clock-below-floor"},
	{node.Refusal{Cause: node.CauseReservedBound, Phase: node.Refusing}, "-NOTREADY refusing reason=reserved-bound-reached"},
	{node.Refusal{Cause: node.CauseReservedBound, Bound: node.BoundLate}, "-NOTREADY reserved bound reached: the process stood still, and is writing a new reserved bound reason=reserved-bound-reached"},
	{node.Refusal{Cause: node.CauseReservedBound, Bound: node.BoundStalled}, "-NOTREADY reserved bound reached: the state directory does not answer reason=reserved-bound-reached"},
	{node.Refusal{Cause: node.CauseReservedBound, Bound: node.BoundUnwritable}, "-NOTREADY reserved bound reached: the state directory cannot be written reason=reserved-bound-reached"},
	{node.Refusal{Cause: node.CauseLeaseBorrowed}, "-NOTREADY a burst has borrowed up to the end of the lease reason=lease-borrowed"},
	{node.Refusal{Cause: node.CauseClockBehind, Behind: 8*time.Millisecond + 1}, "-CLOCK the clock is behind the last ID behind_ms=9 retry_after_ms=9"},
	{node.Refusal{Cause: node.CauseClockWrong, Phase: node.Refusing, Offset: -7 * time.Second}, "-CLOCK most voters say that this node's clock is wrong offset_ms=-7000"},
	{node.Refusal{Cause: node.CauseLeaseExpired}, "-FENCED the lease has expired: ZooKeeper could not be reached to renew it"},
	{node.Refusal{Cause: node.CauseLostWorker, Phase: node.Starting}, "-FENCED this node lost its worker and is registering as a new one"},
	{node.Refusal{Cause: node.CauseTimeUsedUp}, "-EXHAUSTED the layout's time field is used up"},
	{node.Refusal{Cause: node.CauseDraining, Phase: node.Serving}, "-NOTREADY draining: the node stops soon"},
	{node.Refusal{Cause: node.CauseStopping, Phase: node.Stopping}, "-NOTREADY stopping"},
}

// Every refusal has a reply, and docs/troubleshooting.md says what to do about its cause.
func TestEveryRefusalIsDocumented(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	guide, admin := read("../../docs/troubleshooting.md"), read("../../docs/http.md")
	worded := make(map[node.Cause]bool)
	for _, row := range refusals {
		worded[row.refusal.Cause] = true
		if got := word(&row.refusal).Error(); got != row.wire {
			t.Errorf("%+v is sent as %q, want %q", row.refusal, got, row.wire)
		}
	}
	for _, cause := range node.Causes() {
		if !worded[cause] {
			t.Errorf("no row for %s", cause)
		}
		if !strings.Contains(guide, string(cause)) {
			t.Errorf("docs/troubleshooting.md does not say what to do about %s", cause)
		}
	}
	for _, trouble := range node.Troubles() {
		if !strings.Contains(admin, "`"+trouble+"`") {
			t.Errorf("docs/http.md says nothing of %s", trouble)
		}
	}
}

// docs/troubleshooting.md has each reply of the table above, with N for its figures.
// TestEveryRefusalIsDocumented checks that the table is complete.
func TestTroubleshootingHasEveryRefusal(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	figure := regexp.MustCompile(`=-?\d+`)
	for _, row := range refusals {
		if reply := figure.ReplaceAllString(row.wire, "=N"); !strings.Contains(string(page), "\n| `"+reply+"`") {
			t.Errorf("docs/troubleshooting.md does not say what to do about %s", reply)
		}
	}
}

// starting returns the backend of a node that refuses, because Run has not been called.
func starting(t *testing.T) *Backend {
	t.Helper()
	none := time.Duration(0)
	mem := zkstore.NewMem(func() int64 { return time.Now().UnixMilli() })
	cache, err := localcache.New(memfile.New(nil), localcache.Fingerprint{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(node.Config{
		Cluster: "test", Store: mem.Session(), Cache: cache, Labels: coordinator.Labels{Name: "n"},
		Bootstrap: true, InMemory: true, Settings: node.Settings{ConfirmTime: &none},
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(n, "1.2.3")
}

// A refusal has the same text in reply to GET and READY, in STATS and in snapshots.
func TestRefusalIsTheSameEverywhere(t *testing.T) {
	const want = "-NOTREADY starting reason=no-worker-yet"
	b := starting(t)
	if _, err := b.Reserve(t.Context(), 1); err == nil || err.Error() != want {
		t.Errorf("Reserve: %v", err)
	}
	if err := b.Ready(); err == nil || err.Error() != want {
		t.Errorf("Ready: %v", err)
	}
	s := b.Snapshot()
	if got := "-" + s.Code + " " + s.Reason; got != want || s.Cause != node.CauseNoWorkerYet {
		t.Errorf("snapshot: %s, cause %s", got, s.Cause)
	}
	stats := make(map[string]string)
	for _, s := range b.Stats() {
		stats[s.Name] = s.Value
	}
	for name, value := range map[string]string{
		"version": "1.2.3", "name": "n", "reason": want, "cause": "no-worker-yet", "ready": "false",
	} {
		if stats[name] != value {
			t.Errorf("STATS has %s %q, want %q", name, stats[name], value)
		}
	}
	if _, err := b.Decode(1); err == nil || !strings.HasPrefix(err.Error(), "-NOTREADY starting: ") {
		t.Errorf("Decode: %v", err)
	}
}

// Neither an ID nor a lasting refusal allocates memory.
func TestReserveAllocatesNothing(t *testing.T) {
	b := starting(t)
	allocates := func(ready bool) float64 {
		return testing.AllocsPerRun(1000, func() {
			if _, err := b.Reserve(t.Context(), 1); (err == nil) != ready {
				t.Errorf("ready: %v, but %v", ready, err)
			}
		})
	}
	if n := allocates(false); n != 0 {
		t.Errorf("a refusal allocates %v times", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); b.Ready() != nil; {
		if time.Now().After(deadline) {
			t.Fatal(b.Ready())
		}
		time.Sleep(time.Millisecond)
	}
	if n := allocates(true); n != 0 {
		t.Errorf("an ID allocates %v times", n)
	}
	if text, err := b.Decode(1); err != nil || !strings.HasPrefix(text, "id=1 time=2010-11-04T01:42:54.657Z timestamp_ms=1288834974657 ") {
		t.Errorf("Decode: %q, %v", text, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
