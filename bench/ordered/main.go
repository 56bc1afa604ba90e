//go:build linux

// Command ordered measures ordered sequences beside segment ones: at the owner, through another node, and a family of
// ten million names over three nodes. `make bench-ordered` runs it.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/bench/nodes"
	"github.com/flaked/flaked/internal/core/positions"
)

var (
	rounds = flag.Int("rounds", 5, "how often to measure each row")
	long   = flag.Duration("for", 2*time.Second, "how long to measure a row")
)

const (
	size     = 3 // nodes
	conns    = 50
	sections = 64
	names    = 10_000_000
	// The servers share one core, and the load has another one.
	serverCore, loadCore = "0", "1"
)

func address(node int) string { return fmt.Sprintf("127.0.0.1:%d", 27711+10*node) }

func main() {
	flag.Parse()
	runtime.LockOSThread() // the nodes end with this thread
	dir, err := os.MkdirTemp("", "flaked-bench")
	nodes.Check(err)
	defer os.RemoveAll(dir)
	var running []*exec.Cmd
	defer func() {
		for _, c := range running {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}()
	nodes.Check(exec.Command("taskset", "-a", "-cp", loadCore, strconv.Itoa(os.Getpid())).Run())
	for k := range size {
		c := nodes.Start(serverCore, "bench", "--admin", "off", "--log-level", "error", "--listen", address(k),
			"--state-dir", fmt.Sprintf("%s/%d", dir, k))
		running = append(running, c)
	}
	create("segment")
	create("ordered", "--mode", "ordered")
	create("msg:*", "--mode", "ordered", "--sections", strconv.Itoa(sections))
	settle()
	owner := ownerOf("ordered")
	other := (owner + 1) % size
	one := func(at int, name string) load { return load{at, func(int) string { return name }} }
	rows := []struct {
		name     string
		pipeline int
		loads    []load
	}{
		{"segment", 1, []load{one(owner, "segment")}},
		{"ordered, at the owner", 1, []load{one(owner, "ordered")}},
		{"ordered, at another node", 1, []load{one(other, "ordered")}},
		{"segment", 100, []load{one(owner, "segment")}},
		{"ordered, at the owner", 100, []load{one(owner, "ordered")}},
		{"ordered, at another node", 100, []load{one(other, "ordered")}},
		{"family, each name at its owner", 100, family()},
	}
	results := make([][]result, len(rows))
	for range *rounds {
		for k, row := range rows {
			results[k] = append(results[k], measure(row.pipeline, row.loads))
		}
	}
	fmt.Printf("medians of %d rounds, %d connections\n\n%-32s %8s %12s %9s\n", *rounds, conns, "", "pipeline",
		"values/s", "p99, ms")
	for k, row := range rows {
		r := median(results[k])
		fmt.Printf("%-32s %8d %12.0f %9.3f\n", row.name, row.pipeline, r.rate, r.p99.Seconds()*1000)
	}
	for k, c := range running {
		fmt.Printf("memory of node %d: %.0f MiB\n", k, nodes.Memory(c.Process.Pid))
	}
}

// create creates a sequence, when a node is ready.
func create(name string, more ...string) {
	args := append([]string{"seq", "create", "--zk", *nodes.ZK, "--cluster", "bench", "--ceiling", "100000000", name},
		more...)
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, err := exec.Command(*nodes.Binary, args...).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			log.Fatalf("%s: %s", name, out)
		}
	}
}

// settle asks all nodes for values until the sections have had the time to move to their places.
func settle() {
	for range 40 {
		for node := range size {
			lines(node, "NEXT segment\nNEXT ordered\n", 2)
			for k := range 8 * sections {
				lines(node, fmt.Sprintf("NEXT msg:%d\n", k), 1)
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// lines sends a request, and returns the lines of the reply.
func lines(node int, request string, n int) (out []string) {
	c, err := net.Dial("tcp", address(node))
	nodes.Check(err)
	defer c.Close()
	_, err = c.Write([]byte(request))
	nodes.Check(err)
	for in := bufio.NewScanner(c); len(out) < n && in.Scan(); {
		out = append(out, in.Text())
	}
	return out
}

func ownerOf(name string) int {
	for range 100 {
		lines(0, "NEXT "+name+"\n", 1) // a node takes the section
		line := lines(0, "SEQ "+name+"\n", 1)[0]
		for k := range size {
			if strings.Contains(line, "owner="+address(k)+" ") {
				return k
			}
		}
	}
	log.Fatalf("%s has no owner", name)
	return 0
}

// load is requests to one node. name returns the name to ask for in request k.
type load struct {
	node int
	name func(k int) string
}

// family returns the loads of the names that each node owns.
func family() (all []load) {
	owners := make([]int, sections)
	for k, found := 0, 0; found < sections; k++ {
		name := fmt.Sprintf("msg:%d", k)
		if s, _ := positions.SectionAndLane(name, sections); owners[s] == 0 {
			owners[s] = ownerOf(name) + 1
			found++
		}
	}
	for node := range size {
		var mine []string
		for k := 0; len(mine) < 300_000; k += 7 {
			name := fmt.Sprintf("msg:%d", k%names)
			if s, _ := positions.SectionAndLane(name, sections); owners[s] == node+1 {
				mine = append(mine, name)
			}
			if k > 3*names && len(mine) == 0 {
				break
			}
		}
		if len(mine) > 0 {
			all = append(all, load{node, func(k int) string { return mine[k%len(mine)] }})
		}
	}
	return all
}

type result struct {
	rate float64
	p99  time.Duration
}

// measure spreads the connections over the loads.
func measure(pipeline int, loads []load) result {
	var mu sync.Mutex
	var group sync.WaitGroup
	var all []time.Duration
	began := time.Now()
	for c := range conns {
		group.Go(func() {
			took := drive(loads[c%len(loads)], c, pipeline, began.Add(*long))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	group.Wait()
	slices.Sort(all)
	return result{float64(len(all)*pipeline) / time.Since(began).Seconds(), all[len(all)*99/100]}
}

// drive sends pipelines on one connection, and returns how long each took.
func drive(l load, c, pipeline int, end time.Time) (took []time.Duration) {
	conn, err := net.Dial("tcp", address(l.node))
	nodes.Check(err)
	defer conn.Close()
	in := make([]byte, 1<<16)
	var out []byte
	for k := c * 9973; time.Now().Before(end); {
		out = out[:0]
		for range pipeline {
			out = append(append(append(out, "NEXT "...), l.name(k)...), '\n')
			k++
		}
		sent := time.Now()
		_, err := conn.Write(out)
		nodes.Check(err)
		for got := 0; got < pipeline; {
			n, err := conn.Read(in)
			nodes.Check(err)
			if in[0] == '-' {
				log.Fatalf("%s", in[:n])
			}
			got += bytes.Count(in[:n], []byte{'\n'})
		}
		took = append(took, time.Since(sent))
	}
	return took
}

// median returns the round with the median rate.
func median(all []result) result {
	slices.SortFunc(all, func(a, b result) int { return int(a.rate - b.rate) })
	return all[len(all)/2]
}
