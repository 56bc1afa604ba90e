//go:build linux

// Command ahead measures how fast one process gets IDs without a round trip for each: from a node in the program, from
// the client's stock over a unix socket, and from uid-generator's ring. `make bench` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

const (
	batch = 1000
	slow  = 50_000 // IDs a second, at which a stock gets old
	// prefetch is the most that a client allows.
	prefetch = 100_000
	maxAge   = 100 * time.Millisecond
)

var (
	zk     = flag.String("zk", os.Getenv("FLAKED_ZK"), "a ZooKeeper, host:port")
	socket = flag.String("socket", "", "unix socket of a node with the same layout")
	peer   = flag.String("peer", "", "command that runs bench/uid-generator")
	rounds = flag.Int("rounds", 5, "how often to measure each row")
	long   = flag.Duration("for", time.Second, "how long to measure a row")
	layout worker.Layout
)

// result is one round of a row. age is that of the oldest of many IDs.
type result struct {
	rate float64
	age  time.Duration
}

// measure takes IDs in goroutines, n at a time, and at most limit a second if limit is not 0.
func measure(source ids.Source, goroutines, n int, limit float64) (r result) {
	var mu sync.Mutex
	var group sync.WaitGroup
	began := time.Now()
	for range goroutines {
		group.Go(func() {
			got, age := take(source, n, limit, began)
			mu.Lock()
			defer mu.Unlock()
			r.rate, r.age = r.rate+float64(got), max(r.age, age)
		})
	}
	group.Wait()
	r.rate /= time.Since(began).Seconds()
	return r
}

func take(source ids.Source, n int, limit float64, began time.Time) (got int, oldest time.Duration) {
	ctx, one := context.Background(), make([]worker.ID, 1)
	for time.Since(began) < *long {
		all := one
		for range max(1, 256/n) {
			var err error
			if n > 1 {
				all, err = source.Take(ctx, n)
			} else {
				all[0], err = source.Next(ctx)
			}
			check(err)
			got += n
		}
		fields, err := layout.Decode(all[0])
		check(err)
		oldest = max(oldest, time.Since(layout.Time(fields)))
		if limit > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(got) / limit * 1e9))))
		}
	}
	return got, oldest
}

// ring runs uid-generator, longer because the JVM compiles first. It prints its age in seconds.
func ring(threads int) (r result) {
	words := append(strings.Fields(*peer), strconv.Itoa(threads), fmt.Sprint(3*long.Seconds()))
	out, err := exec.Command(words[0], words[1:]...).Output()
	check(err)
	var failed, age float64
	_, err = fmt.Sscan(string(out), &r.rate, &failed, &age)
	check(err)
	r.age = time.Duration(age * 1e9)
	return r
}

func main() {
	flag.Parse()
	for _, p := range worker.Presets() {
		if p.Name == "wide16" {
			layout = p.Layout
		}
	}
	dir, err := os.MkdirTemp("", "flaked-bench")
	check(err)
	defer os.RemoveAll(dir)
	inside, err := flaked.Open(context.Background(), flaked.Config{ZooKeeper: *zk, Cluster: "inside", Bootstrap: true,
		StateDir: dir, Settings: flaked.Settings{Layout: layout.String()}})
	check(err)
	defer inside.Close(context.Background())
	stock, err := client.New(client.Config{Addrs: []string{"unix:" + *socket}, Prefetch: prefetch,
		MaxAge: maxAge, MaxBatch: 10_000})
	check(err)
	defer stock.Close()
	var names []string
	var runs []func() result
	add := func(run func() result, name string, args ...any) {
		names, runs = append(names, fmt.Sprintf(name, args...)), append(runs, run)
	}
	for _, g := range []int{1, 2, 8} {
		add(func() result { return measure(inside, g, 1, 0) }, "node in the program, %d goroutines", g)
		add(func() result { return measure(inside, g, batch, 0) }, "the same, %d at a time", batch)
		add(func() result { return measure(stock, g, 1, 0) }, "client's stock, %d goroutines", g)
		if *peer != "" {
			add(func() result { return ring(g) }, "uid-generator, %d threads", g)
		}
	}
	add(func() result { return measure(stock, 1, 1, slow) }, "client's stock, %d IDs a second", slow)
	results := make([][]result, len(runs))
	for range *rounds {
		for k, run := range runs {
			results[k] = append(results[k], run())
		}
	}
	fmt.Printf("\n%-36s %12s %23s %12s   stock: %d IDs, kept for %v\n", fmt.Sprintf("medians of %d rounds", *rounds),
		"IDs/s", "least-greatest", "oldest ID", prefetch, maxAge)
	for k, all := range results {
		slices.SortFunc(all, func(a, b result) int { return int(a.rate - b.rate) })
		low, mid, high, oldest := all[0], all[len(all)/2], all[len(all)-1], all[0].age
		for _, r := range all {
			if r.age.Abs() > oldest.Abs() {
				oldest = r.age
			}
		}
		fmt.Printf("%-36s %12.0f %11.0f-%11.0f %12v\n", names[k], mid.rate, low.rate, high.rate,
			oldest.Round(time.Millisecond))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
