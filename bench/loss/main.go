//go:build unix

// Command loss measures for how long users of a flaked binary wait: see bench/loss.sh, which runs
// it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// row is one line of the table. Each binary has a text for it.
type row struct {
	what  string
	texts map[string]string
}

// table collects results. Rows keep the order in which the first binary adds them, by group.
type table struct {
	mu     sync.Mutex
	groups []string
	rows   map[string][]*row
}

func (t *table) add(group, what, binary, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(os.Stderr, "%s  %s: %s, %s: %s\n", time.Now().Format("15:04:05"), filepath.Base(binary), group, what,
		text)
	for _, r := range t.rows[group] {
		if r.what == what {
			r.texts[binary] = text
			return
		}
	}
	t.rows[group] = append(t.rows[group], &row{what, map[string]string{binary: text}})
}

func (t *table) print(binaries []string) {
	fmt.Print("| | what |")
	for _, b := range binaries {
		fmt.Printf(" %s |", filepath.Base(b))
	}
	fmt.Print("\n|---|---|")
	for range binaries {
		fmt.Print("---|")
	}
	fmt.Println()
	for _, group := range t.groups {
		for _, r := range t.rows[group] {
			fmt.Printf("| %s | %s |", group, r.what)
			for _, b := range binaries {
				fmt.Printf(" %s |", r.texts[b])
			}
			fmt.Println()
		}
	}
}

func main() {
	dir, err := os.MkdirTemp("", "flaked-loss-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries := os.Args[1:]
	results := &table{groups: []string{"one server", "three servers"}, rows: map[string][]*row{}}
	var all sync.WaitGroup
	var failed sync.Map
	for i, binary := range binaries {
		for servers, measure := range map[int]func(*run){1: oneServer, 3: threeServers} {
			all.Go(func() {
				r := &run{binary: binary, group: results.groups[servers/3], results: results,
					dir: filepath.Join(dir, fmt.Sprint(i, "-", servers))}
				defer r.end()
				defer func() {
					if problem := recover(); problem != nil {
						failed.Store(binary, true)
						fmt.Fprintf(os.Stderr, "%s, %s: %v\n", binary, r.group, problem)
					}
				}()
				r.zk = startZooKeeper(r, servers)
				measure(r)
			})
		}
	}
	all.Wait()
	results.print(binaries)
	code := 0
	failed.Range(func(_, _ any) bool { code = 1; return false })
	if code == 0 {
		os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "logs:", dir)
	}
	os.Exit(code)
}

// A quiet cluster has been up for this long. It is more than ten confirming times.
const quiet = 135 * time.Second

// oneServer measures with a single ZooKeeper server.
func oneServer(r *run) {
	began := time.Now()
	a := r.node()
	r.add("a: first ID of a new node, empty cluster", seconds(a.start("--bootstrap").first("GET")))
	r.create("order")
	r.create("invoice", "--mode", "strict")
	a.first("NEXT order")
	a.first("NEXT invoice")
	requests := func() int { return r.zk.counter("zk_packets_received") }
	idle(a, 9*time.Second)
	from, since := requests(), time.Now()
	idle(a, time.Minute)
	r.add("f: requests to ZooKeeper per heartbeat, one sequence in use",
		fmt.Sprintf("%.1f", float64(requests()-from)/time.Since(since).Seconds()*3))
	a.load(time.Until(began.Add(quiet)))
	b := r.node()
	r.add("a: first ID of a new node, quiet cluster", seconds(b.start().first("GET")))
	b.stop()
	restarts(r, a)
	outages(r, a)
	losses(r, a)
}

// idle asks the node for a value of the sequence once a heartbeat.
func idle(n *node, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(3 * time.Second) {
		n.ask("NEXT order")
	}
}

// restarts measures restarts of a node that is in use. Each row has the times of three restarts.
func restarts(r *run, a *node) {
	for _, end := range []struct {
		name string
		by   func()
	}{{"SIGTERM", a.stop}, {"kill -9", a.kill}} {
		var id, next [3]time.Duration
		for i := range id {
			a.load(5 * time.Second)
			end.by()
			a.start()
			var both sync.WaitGroup
			both.Go(func() { id[i] = a.first("GET") })
			both.Go(func() { next[i] = a.first("NEXT order") })
			both.Wait()
		}
		r.add("b: restart after "+end.name+", first ID", seconds(id[:]...))
		r.add("b: restart after "+end.name+", first NEXT", seconds(next[:]...))
	}
}

// outages measures how long requests are refused while ZooKeeper is away and after it.
func outages(r *run, a *node) {
	for _, away := range []time.Duration{1500 * time.Millisecond, 30 * time.Second} {
		a.load(10 * time.Second)
		watches := []*watch{watchAt("GET", a), watchAt("NEXT order", a), watchAt("NEXT invoice", a)}
		time.Sleep(time.Second)
		took := r.zk.outage(away)
		time.Sleep(25 * time.Second)
		for i, name := range []string{"GET", "NEXT, segment", "NEXT, strict"} {
			r.add(fmt.Sprintf("d: ZooKeeper is away for %s, %s refused", away, name),
				fmt.Sprintf("%s (away for %.1f s)", watches[i].stop(), took.Seconds()))
		}
	}
}

// losses measures what operators and users notice after ZooKeeper was wiped.
func losses(r *run, a *node) {
	watches := []*watch{watchAt("GET", a), watchAt("NEXT order", a)}
	r.zk.wipe()
	lost := time.Now()
	for _, args := range [][]string{{"fresh", "--start", "1000"}, {"other"}} {
		text := ""
		for {
			out, err := r.flaked(append([]string{"seq", "create"}, args...)...)
			if err == nil {
				text += fmt.Sprintf("created %.1f s after the loss", time.Since(lost).Seconds())
				break
			}
			if text == "" {
				text = fmt.Sprintf("at first: %s; ", short(out))
			}
			if time.Since(lost) > time.Minute {
				text += "after a minute still: " + short(out)
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		r.add(fmt.Sprintf("e: seq create %v after a wipe", args), text)
	}
	r.add("e: GET refused after a wipe", watches[0].stop())
	r.add("e: NEXT, segment, refused after a wipe", watches[1].stop())
}

// threeServers measures with an ensemble of three.
func threeServers(r *run) {
	began := time.Now()
	nodes := []*node{r.node(), r.node(), r.node()}
	r.add("a: first ID of a new node, empty cluster", seconds(nodes[0].start("--bootstrap").first("GET")))
	r.create("order")
	nodes[0].first("NEXT order")
	nodes[1].start().first("NEXT order")
	nodes[0].load(time.Until(began.Add(quiet)))
	r.add("a: first ID of a new node, quiet cluster", seconds(nodes[2].start().first("GET")))
	nodes[2].first("NEXT order")
	restarts(r, nodes[0])
	for _, n := range nodes {
		n.load(5 * time.Second)
	}

	// A rolling restart. Each node is restarted once the one before answers READY.
	var each []*watch
	for _, n := range nodes {
		each = append(each, watchAt("NEXT order", n))
	}
	client := watchAt("NEXT order", nodes...)
	since := time.Now()
	for _, n := range nodes {
		n.stop()
		n.start().first("READY")
	}
	took := time.Since(since)
	time.Sleep(20 * time.Second)
	for i := range nodes {
		r.add(fmt.Sprintf("c: rolling restart, NEXT refused by node %d", i+1), each[i].stop())
	}
	r.add("c: rolling restart, NEXT refused to a client that fails over", client.stop())
	r.add("c: rolling restart, time for the three nodes", seconds(took))
}
