package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/timeguard"
)

// laterClock is a machine on which more time has passed.
type laterClock struct {
	timeguard.Clock
	by *time.Duration
}

func (c laterClock) Boot() int64 { return c.Clock.Boot() + int64(*c.by) }
func (c laterClock) Wall() int64 { return c.Clock.Wall() + int64(*c.by) }

type noLedger struct{}

func (noLedger) Save(coordinator.Claim) (uint64, error) { return 1, nil }

// register acquires a worker as a node does, and sends one heartbeat when the confirming time is over by its
// clocks.
func register(t *testing.T, st store.Store, cl coordinator.Cluster, name string) *coordinator.Coordinator {
	t.Helper()
	later := time.Duration(0)
	c := coordinator.New(coordinator.Config{
		Store: st, Now: func() int64 { return time.Now().UnixMilli() },
		Elapsed: timeguard.NewElapsed(laterClock{timeguard.System(), &later}), Ledger: noLedger{},
		Labels: coordinator.Labels{Name: name, Address: "127.0.0.1:7609", Version: "1.2.3"},
	})
	c.Join(cl)
	ctx := t.Context()
	fine := func(coordinator.Reading, []coordinator.Reading) error { return nil }
	c.Recall(coordinator.Claim{Owner: coordinator.Owner{Node: "node-" + name}})
	if _, _, err := c.Register(ctx, cl, time.Hour, fine); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureLiveLock(ctx); err != nil {
		t.Fatal(err)
	}
	later = time.Minute
	beat, err := c.Heartbeat(ctx, coordinator.Report{Lease: time.Hour, Generation: 1, Phase: "serving"})
	if err := errors.Join(err, c.Accept(beat, 0)); err != nil {
		t.Fatal(err)
	}
	return c
}

// status shows the states of workers as the real protocol writes them.
func TestStatusOfRealWorkers(t *testing.T) {
	st, cl := newCluster(t)
	a, b := register(t, st, cl, "a"), register(t, st, cl, "b")
	register(t, st, cl, "c")
	now := time.Now().UnixMilli()
	for _, row := range []struct {
		step func() error
		want []string
		code int
	}{
		{func() error { return nil }, []string{"live", "live", "live"}, exitOK},
		{func() error { return a.Stop(t.Context(), now, 1) }, []string{"stopped", "live", "live"}, exitOK},
		{func() error { return b.Release(t.Context(), now-1) }, []string{"stopped", "free", "live"}, exitOK},
		{func() error { return st.Delete(t.Context(), "/live/0002", store.AnyVersion) },
			[]string{"stopped", "free", "disconnected"}, exitDegraded},
		{func() error { return st.Delete(t.Context(), coordinator.SlotPath(1), store.AnyVersion) },
			[]string{"stopped", "record-missing", "disconnected"}, exitDegraded},
	} {
		if err := row.step(); err != nil {
			t.Fatal(err)
		}
		r := call(t, "", "status", "-o", "json")
		var report health.Report
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		var states []string
		for _, w := range report.Workers {
			states = append(states, string(w.State))
		}
		if !slices.Equal(states, row.want) || r.code != row.code {
			t.Errorf("exit code %d, %q, want %+v", r.code, states, row)
		}
	}
}

// All workers of the default layout have a full history and a node that does not answer. status
// reads them in well under a second, and asks for less than one.
func TestStatusOfAllWorkersIsFast(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("has one address on loopback")
	}
	st, cl := newCluster(t)
	silent, err := net.Listen("tcp4", "0.0.0.0:0") // at all of 127.0.0.0/8
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, port, _ := net.SplitHostPort(silent.Addr().String())
	host, _ := os.Hostname()
	now := time.Now().UnixMilli()
	for from := 0; from < cl.Slots; from += 64 {
		var ops []store.Op
		for w := from; w < from+64; w++ {
			e := liveEntry(w, 0)
			e.Slot.LeaseUntil, e.Slot.ReportedClock, e.Slot.Host, e.Slot.Address = now+hour, now, host,
				fmt.Sprintf("127.1.%d.%d:%s", w/256, w%256, port)
			for range 4 {
				past := coordinator.PastHolder{Node: "d3b07384-d113-4ec6-a5a2-1d2f9c1b7a01", Term: 12, Granted: now,
					Ended: coordinator.EndedReleased}
				e.Slot.History = append(e.Slot.History, past)
			}
			data, err := json.Marshal(e.Slot)
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, store.CreateOp{Path: fmt.Sprintf("/workers/%04d", w), Data: data})
		}
		if err := st.Multi(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	cl.HighestSlot = cl.Slots - 1
	put(t, st, "/cluster", cl, false)
	began := time.Now()
	r := call(t, "", "status")
	took := time.Since(began)
	r.wants(t, exitDegraded, "workers are free: 0 of 1024.\n", "")
	if n := strings.Count(r.stdout, " disconnected "); n != 1024 ||
		!strings.Contains(r.stdout, "nodes asked: 1024 did not answer in time") {
		t.Errorf("%d rows, and below them %q", n, r.stdout[max(0, len(r.stdout)-500):])
	}
	if took > 4*time.Second { // under the race detector, on a busy machine
		t.Errorf("status took %v", took)
	}
}
