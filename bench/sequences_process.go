//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

// InProcess is the time for one value without a network.
type InProcess struct {
	Who        string
	Goroutines int
	Batch      int
	Round      int
	Nanos      float64
}

// alwaysConfirmed is the tenure of an Issuer without a node.
type alwaysConfirmed struct{}

func (alwaysConfirmed) Confirmed(int64) bool { return true }
func (alwaysConfirmed) Cluster() (seqstore.ClusterInfo, bool) {
	return seqstore.ClusterInfo{UUID: "bench", ConfirmTime: time.Millisecond, MaxLease: time.Hour}, true
}

var benchStart = time.Now()

func mono() int64 { return int64(time.Since(benchStart)) + 1 }

func newIssuer(store zkstore.Store, by string, mono func() int64) *seqstore.Issuer {
	return seqstore.New(seqstore.Config{
		Store: store, Tenure: alwaysConfirmed{}, By: by, Lookups: 1 << 20,
		Now:  func() int64 { return benchStart.UnixMilli() + mono()/1e6 },
		Mono: mono,
	})
}

// measureProcess measures an Issuer and SQLite.
func (s *Sequences) measureProcess(ctx context.Context, f *farm) error {
	mem := zkstore.NewMem(func() int64 { return time.Now().UnixMilli() })
	mem.SetEpoch(1)
	store := mem.Session()
	if err := store.EnsureRoot(ctx); err != nil {
		return err
	}
	var stopped atomic.Int64 // the time at which the clock stands still, 0 while it does not
	i := newIssuer(store, "bench", func() int64 {
		if at := stopped.Load(); at != 0 {
			return at
		}
		return mono()
	})
	run, stop := context.WithCancel(ctx)
	defer stop()
	go i.Run(run)
	o := seqstore.Operator{Store: mem.Session(), Now: func() int64 { return time.Now().UnixMilli() }}
	if err := awaitState(ctx, o); err != nil {
		return err
	}
	d := definition(steadySequence)
	d.Block, d.Ceiling, d.HardCeiling = sequence.MaxBlock, 1_000_000_000, 1_000_000_000
	if _, err := o.Create(ctx, d); err != nil {
		return err
	}
	for round := range f.o.Rounds {
		for _, batch := range []int{1, 64} {
			for _, goroutines := range []int{1, 2} {
				for _, who := range []string{inProcess, inProcessNoClock} {
					nanos, err := timeTakes(i, goroutines, batch, func() {
						if who == inProcessNoClock {
							stopped.Store(mono())
						}
					})
					if stopped.Store(0); err != nil {
						return err
					}
					s.Process = append(s.Process, InProcess{who, goroutines, batch, round, nanos})
				}
			}
		}
		nanos, err := timeSQLite(ctx)
		if err != nil {
			return err
		}
		s.Process = append(s.Process, InProcess{sqlite, 1, 1, round, nanos})
	}
	fmt.Printf("in process: %+v\n", s.Process)
	return nil
}

// takeTime is how long values are taken in process.
const takeTime = 300 * time.Millisecond

const (
	inProcess        = "flaked"
	inProcessNoClock = "flaked, without reading the clock"
)

// timeTakes returns the nanoseconds for a value. It calls ready when there are values to take.
func timeTakes(i *seqstore.Issuer, goroutines, batch int, ready func()) (float64, error) {
	var group sync.WaitGroup
	counts, errs := make([]int, goroutines), make([]error, goroutines)
	if _, err := take(i, steadySequence, 1); err != nil {
		return 0, err
	}
	ready()
	began := time.Now()
	for g := range goroutines {
		group.Go(func() {
			var runs []worker.Run
			var n int
			name := []byte(steadySequence)
			var w sequence.Wait
			for n%1024 != 0 || time.Since(began) < takeTime {
				if runs, errs[g] = i.Take(&w, name, batch, false, func() {}, runs[:0]); errs[g] != nil {
					return
				}
				n++
			}
			counts[g] = n * batch
		})
	}
	group.Wait()
	elapsed, total := time.Since(began), 0
	for g := range goroutines {
		if total += counts[g]; errs[g] != nil {
			return 0, errs[g]
		}
	}
	return float64(elapsed.Nanoseconds()) / float64(total), nil
}

// take takes n values, and waits for them if it must.
func take(i *seqstore.Issuer, name string, n int) ([]worker.Run, error) {
	var w sequence.Wait
	for {
		woken := make(chan struct{}, 1)
		runs, err := i.Take(&w, []byte(name), n, false, func() { woken <- struct{}{} }, nil)
		if err != sequence.ErrPending {
			return runs, err
		}
		<-woken
	}
}

const sqlite = "SQLite in memory, AUTOINCREMENT"

// sqliteScript inserts rows, one transaction each.
const sqliteScript = `
import sqlite3, time
c = sqlite3.connect(":memory:", isolation_level=None)
c.execute("create table t (id integer primary key autoincrement)")
n, began = 50000, time.perf_counter()
for _ in range(n):
    c.execute("insert into t default values").lastrowid
print((time.perf_counter() - began) / n * 1e9)
`

func timeSQLite(ctx context.Context) (float64, error) {
	out, err := exec.CommandContext(ctx, "python3", "-c", sqliteScript).Output()
	if err != nil {
		return 0, fmt.Errorf("python3 with sqlite3: %w", err)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}
