//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/bench/local"
	"github.com/flaked/flaked/internal/load"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/zkstore"
)

// Crowd is what many Issuers wait that use one name for the first time together.
type Crowd struct {
	Issuers     int
	Median, All float64 // seconds
	Refused     int64   // requests that were refused and sent again
	Writes      int64
}

// Many is one Issuer that uses many sequences.
type Many struct {
	Names      int
	FirstUse   float64 // seconds until all had a value
	Heap, RSS  float64 // bytes of the Issuer for a name
	ZooKeeper  int64   // resident bytes of ZooKeeper
	Data       int64   // bytes of data, as ZooKeeper says
	OneWaiting float64 // ms until a new name has a value, median
	Writes     float64 // a second, while all records are due to be written again
}

const (
	crowdSize   = 1024
	manyNames   = 100_000
	watchWrites = 60 * time.Second
	// renewalsDue is a time after which all records are old enough to be written again.
	renewalsDue  = 10 * time.Minute
	waitingNames = 20
)

// measureCluster measures Issuers in this process on a ZooKeeper with enough memory.
func (s *Sequences) measureCluster(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "flaked-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("_JAVA_OPTIONS", "-Xmx512m"); err != nil { // the script's default is too small for many records
		return err
	}
	zk, err := local.StartZooKeeper(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.StopZooKeeper(dir)) }()
	store, err := connect(ctx, zk, "bench")
	if err != nil {
		return err
	}
	defer store.Close()
	o := seqstore.Operator{Store: store, Now: func() int64 { return time.Now().UnixMilli() }}
	if err := until(ctx, func() error { return store.EnsureRoot(ctx) }); err != nil {
		return err
	}
	if err := s.measureMany(ctx, zk, dir, o); err != nil {
		return fmt.Errorf("many sequences: %w", err)
	}
	if err := s.measureCrowd(ctx, zk, o); err != nil {
		return fmt.Errorf("many Issuers: %w", err)
	}
	return nil
}

// issuers runs Issuers with a session each until stop is called.
func issuers(ctx context.Context, zk string, n int, mono func() int64) (all []*seqstore.Issuer, stop func(), err error) {
	run, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	var stores []*zkstore.ZK
	stop = func() {
		cancel()
		_ = group.Wait()
		for _, store := range stores {
			_ = store.Close()
		}
	}
	for k := range n {
		store, err := connect(ctx, zk, "bench")
		if err != nil {
			stop()
			return nil, nil, err
		}
		i := newIssuer(store, fmt.Sprintf("bench %d", k), mono)
		stores, all = append(stores, store), append(all, i)
		group.Go(func() error {
			i.Run(run)
			return nil
		})
	}
	err = until(ctx, func() error {
		if slices.ContainsFunc(all, func(i *seqstore.Issuer) bool { return i.Report().Epoch == 0 }) {
			return errors.New("not all Issuers have read /seq")
		}
		return nil
	})
	if err != nil {
		stop()
	}
	return all, stop, err
}

// patient takes one value, and counts the refusals.
func patient(ctx context.Context, i *seqstore.Issuer, name string, refused *atomic.Int64) error {
	return until(ctx, func() error {
		_, err := take(i, name, 1)
		if err != nil && refused != nil {
			refused.Add(1)
		}
		return err
	})
}

func (s *Sequences) measureCrowd(ctx context.Context, zk string, o seqstore.Operator) error {
	all, stop, err := issuers(ctx, zk, crowdSize, mono)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := o.Create(ctx, definition("crowd")); err != nil {
		return err
	}
	before, err := zxid(zk)
	if err != nil {
		return err
	}
	waits := make([]float64, len(all))
	var refused atomic.Int64
	var group errgroup.Group
	began := time.Now()
	for k, i := range all {
		group.Go(func() error {
			err := patient(ctx, i, "crowd", &refused)
			waits[k] = time.Since(began).Seconds()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	after, err := zxid(zk)
	slices.Sort(waits)
	s.Crowd = Crowd{len(all), quantile(waits, 0.5), waits[len(waits)-1], refused.Load(), after - before}
	fmt.Printf("crowd: %+v\n", s.Crowd)
	return err
}

func (s *Sequences) measureMany(ctx context.Context, zk, dir string, o seqstore.Operator) error {
	m := Many{Names: manyNames}
	var ahead atomic.Int64 // of the time, ns
	all, stop, err := issuers(ctx, zk, 1, func() int64 { return mono() + ahead.Load() })
	if err != nil {
		return err
	}
	defer stop()
	name := func(n int) string { return fmt.Sprintf("many:%06d", n) }
	if err := createMany(ctx, o, manyNames+waitingNames, name); err != nil {
		return err
	}
	heap, rss, began := heapNow(), ownRSS(), time.Now()
	if err := each(manyNames, func(n int) error { return patient(ctx, all[0], name(n), nil) }); err != nil {
		return err
	}
	m.FirstUse = time.Since(began).Seconds()
	m.Heap, m.RSS = (heapNow()-heap)/manyNames, (ownRSS()-rss)/manyNames
	if err := s.oneWaiting(ctx, all[0], name, &m); err != nil {
		return err
	}
	ahead.Store(int64(renewalsDue))
	if m.Writes, err = writesPerSecond(ctx, zk, func(n int) { _, _ = take(all[0], name(n%manyNames), 1) }); err != nil {
		return err
	}
	m.ZooKeeper = residentOf(dir)
	if m.Data, err = mntr(zk, "zk_approximate_data_size"); err != nil {
		return err
	}
	s.Many = m
	fmt.Printf("many: %+v\n", m)
	return nil
}

// createMany creates sequences by copies of the record of the first one. An operator would create them one by one.
func createMany(ctx context.Context, o seqstore.Operator, n int, name func(int) string) error {
	r, err := o.Create(ctx, definition(name(0)))
	if err != nil {
		return err
	}
	bucket := func(b int) string { return fmt.Sprintf("/seq/s/%03x", b) }
	var dirs []string
	for b := range sequence.Buckets {
		dirs = append(dirs, bucket(b))
	}
	if err := o.Store.EnsureRoot(ctx, dirs...); err != nil {
		return err
	}
	const batch = 200
	for first := 1; first < n; first += batch {
		var ops []zkstore.Op
		for k := first; k < min(n, first+batch); k++ {
			r.ID = fmt.Sprintf("%s-%d", r.ID[:8], k)
			data, err := json.Marshal(r)
			if err != nil {
				return err
			}
			ops = append(ops, zkstore.CreateOp{Path: bucket(sequence.Bucket(name(k))) + "/" + name(k), Data: data})
		}
		if err := o.Store.Multi(ctx, ops...); err != nil {
			return err
		}
	}
	return nil
}

// oneWaiting measures the first use of more names, one after the other.
func (s *Sequences) oneWaiting(ctx context.Context, i *seqstore.Issuer, name func(int) string, m *Many) error {
	var waits []float64
	for n := range waitingNames {
		if err := local.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		began := time.Now()
		if err := patient(ctx, i, name(manyNames+n), nil); err != nil {
			return err
		}
		waits = append(waits, time.Since(began).Seconds()*1e3)
	}
	slices.Sort(waits)
	m.OneWaiting = quantile(waits, 0.5)
	return nil
}

// each calls do for 0 to n-1, a few hundred at a time.
func each(n int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(256)
	for k := range n {
		group.Go(func() error { return do(k) })
	}
	return group.Wait()
}

// writesPerSecond returns the writes that ZooKeeper counts while each name is asked for about twice a minute.
func writesPerSecond(ctx context.Context, zk string, ask func(int)) (float64, error) {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for n := 0; asking.Err() == nil; n++ {
			if ask(n); n%1000 == 999 {
				_ = local.Pause(asking, watchWrites/2*1000/manyNames)
			}
		}
	}()
	before, err := zxid(zk)
	if err != nil {
		return 0, err
	}
	if err := local.Pause(ctx, watchWrites); err != nil {
		return 0, err
	}
	after, err := zxid(zk)
	return float64(after-before) / watchWrites.Seconds(), err
}

// heapNow returns the bytes on the heap that are in use.
func heapNow() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func ownRSS() float64 { return float64(load.ProcessStatus(os.Getpid()).VmRSS) }

// residentOf returns the resident memory of the ZooKeeper in dir, 0 if its pid file is not found.
func residentOf(dir string) int64 {
	files, _ := filepath.Glob(filepath.Join(dir, "*", "pid"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return int64(load.ProcessStatus(pid).VmRSS)
		}
	}
	return 0
}

// zxid returns the number of writes that ZooKeeper has seen.
func zxid(zk string) (int64, error) {
	reply, err := local.Ask("tcp", zk, "srvr")
	_, rest, _ := strings.Cut(reply, "Zxid: ")
	word, _, _ := strings.Cut(rest, "\n")
	n, parseErr := strconv.ParseInt(strings.TrimSpace(word), 0, 64)
	return n, cmp.Or(err, parseErr)
}

// mntr returns one of ZooKeeper's figures.
func mntr(zk, name string) (int64, error) {
	reply, err := local.Ask("tcp", zk, "mntr")
	_, rest, _ := strings.Cut(reply, name+"\t")
	word, _, _ := strings.Cut(rest, "\n")
	n, parseErr := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
	return n, cmp.Or(err, parseErr)
}
