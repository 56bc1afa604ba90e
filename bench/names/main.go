//go:build linux

// Command names measures what many named sequences in use cost one node. `make bench-names` runs it.
//
// It puts records of N sequences into ZooKeeper, as an operator would create them. Then it asks for a value of each
// name, and goes on for a while with one request a second for each name, or as many as -rate allows. At last it stops
// the node, starts it again, and kills it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/flaked/flaked/bench/nodes"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

var (
	counts = flag.String("names", "1,1000,10000,100000", "numbers of names. 1: what the requests themselves cost")
	rate   = flag.Int("rate", 10_000, "the most requests a second")
	settle = flag.Duration("settle", 3*time.Minute, "how long to ask before it is measured: blocks grow meanwhile")
	long   = flag.Duration("for", time.Minute, "how long to measure")
	limit  = flag.Duration("limit", 20*time.Minute, "how long a row may take")
)

const (
	address  = "127.0.0.1:7790"
	conns    = 20
	tick     = 2 * time.Millisecond
	together = 100 // records in one transaction
)

func main() {
	flag.Parse()
	runtime.LockOSThread() // the nodes end with this thread
	parent, err := os.MkdirTemp("", "flaked-bench")
	nodes.Check(err)
	defer os.RemoveAll(parent)
	fmt.Printf("%8s %7s %9s %8s %8s %8s %8s %8s %9s %9s %9s %9s %8s %7s\n", "names", "asked/s", "written/s", "cpu", "p50",
		"p99.9", "max", "memory", "files", "first", "stop,", "start", "start", "gap")
	fmt.Printf("%8s %7s %9s %8s %8s %8s %8s %8s %9s %9s %9s %9s %8s %7s\n", "", "", "kB", "%", "ms", "ms", "ms", "MB", "MB",
		"all, s", "s", "s", "killed,s", "killed")
	for field := range strings.SplitSeq(*counts, ",") {
		n, err := strconv.Atoi(field)
		nodes.Check(err)
		b := &bench{cluster: fmt.Sprintf("names-%s-%d", field, os.Getpid()), dir: filepath.Join(parent, field), last: make([]int64, n)}
		late := time.AfterFunc(*limit, func() { log.Fatalf("%d names: not ready after %v", n, *limit) })
		b.run()
		late.Stop()
	}
}

// bench is one row.
type bench struct {
	cluster, dir string
	node         *exec.Cmd
	last         []int64 // the last value of each name
	lastMu       sync.Mutex
	refused      atomic.Int64 // requests of load
}

func name(k int) string { return "name-" + strconv.Itoa(k) }

func (b *bench) run() {
	n := len(b.last)
	b.start()
	b.create()
	first := b.askAll()
	perSecond := min(n, *rate)
	if n == 1 {
		perSecond = *rate
	}
	b.load(perSecond, *settle)
	written, cpu, began := written(b.pid()), cpu(b.pid()), time.Now()
	times := b.load(perSecond, *long)
	took := time.Since(began).Seconds()
	kB, busy := float64(written.since())/1000/took, cpu.since().Seconds()/took*100
	asked := float64(len(times)) / took
	memory, files := nodes.Memory(b.pid()), b.files()
	stopping := time.Now()
	nodes.Check(b.node.Process.Signal(syscall.SIGTERM))
	_ = b.node.Wait()
	stop := time.Since(stopping).Seconds()
	again := b.start()
	b.askAll()
	b.load(perSecond, 10*time.Second)
	nodes.Check(b.node.Process.Kill())
	_ = b.node.Wait()
	before := slices.Clone(b.last)
	killed := b.start()
	b.askAll()
	var gaps []int64
	for k := range before {
		gaps = append(gaps, b.last[k]-before[k]-1)
	}
	slices.Sort(gaps)
	fmt.Printf("%8d %7.0f %9.0f %8.1f %8.2f %8.2f %8.2f %8.0f %9.1f %9.1f %9.2f %9.2f %8.2f %7d\n", n, asked, kB, busy,
		ms(times, 0.5), ms(times, 0.999), ms(times, 1), memory, files, first, stop, again, killed, gaps[len(gaps)/2])
	if n := b.refused.Load(); n > 0 {
		fmt.Printf("%8s %d requests were refused\n", "", n)
	}
	nodes.Check(b.node.Process.Kill())
	_ = b.node.Wait()
}

func ms(sorted []time.Duration, part float64) float64 {
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))].Seconds() * 1000
}

func (b *bench) pid() int { return b.node.Process.Pid }

// start starts the node, and returns how long it takes until it gives a value, or says that there is no such sequence.
func (b *bench) start() (seconds float64) {
	began := time.Now()
	b.node = nodes.Start("", b.cluster, "--admin", "127.0.0.1:7791", "--log-level", "warn", "--listen", address,
		"--state-dir", b.dir)
	for ; ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		_, err = c.Write([]byte("NEXT " + name(0) + "\n"))
		nodes.Check(err)
		line, _ := bufio.NewReader(c).ReadString('\n')
		c.Close()
		if v, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil {
			b.saw(0, v)
			return time.Since(began).Seconds()
		}
		if strings.Contains(line, "no-sequence") {
			return time.Since(began).Seconds()
		}
	}
}

func (b *bench) saw(k int, v int64) {
	b.lastMu.Lock()
	b.last[k] = max(b.last[k], v)
	b.lastMu.Unlock()
}

// create creates one sequence as an operator, and writes the records of the others, as if it were done so often.
func (b *bench) create() {
	out, err := exec.Command(*nodes.Binary, "seq", "create", "--zk", *nodes.ZK, "--cluster", b.cluster, name(0)).CombinedOutput()
	if err != nil {
		log.Fatalf("%s", out)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	z, err := store.NewZK(store.ZKConfig{Connect: *nodes.ZK, Cluster: b.cluster})
	nodes.Check(err)
	go func() { _ = z.Run(ctx) }()
	for z.SessionID() == 0 {
		time.Sleep(time.Millisecond)
	}
	data, _, err := z.Get(ctx, record.Path(name(0)))
	nodes.Check(err)
	r, err := record.Parse(data)
	nodes.Check(err)
	dirs := map[string]bool{}
	for k := 1; k < len(b.last); k++ {
		dirs[record.BucketPath(name(k))] = true
	}
	for dir := range dirs {
		nodes.Check(z.EnsureRoot(ctx, record.RecordsDir, dir))
	}
	var ops []store.Op
	for k := 1; k < len(b.last); k++ {
		r.ID = store.Nonce()
		ops = append(ops, record.CreateOp(name(k), r))
	}
	for some := range slices.Chunk(ops, together) {
		nodes.Check(z.Multi(ctx, some...))
	}
	for len(ops) > 0 { // the nodes must hear of it
		data, stat, err := z.Get(ctx, record.StatePath)
		nodes.Check(err)
		var st record.State
		nodes.Check(json.Unmarshal(data, &st))
		for k := 1; k < len(b.last); k++ {
			st = st.After(name(k))
		}
		if z.Multi(ctx, store.SetOp{Path: record.StatePath, Data: st.Marshal(), Version: stat.Version}) == nil {
			break
		}
	}
	z.Close()
}

// askAll asks for a value of each name until it has one. It returns how long that takes.
func (b *bench) askAll() (seconds float64) {
	began := time.Now()
	var group sync.WaitGroup
	for c := range conns {
		group.Go(func() {
			conn := dial()
			defer conn.Close()
			in := bufio.NewReader(conn)
			var left []int
			for k := c; k < len(b.last); k += conns {
				left = append(left, k)
			}
			for len(left) > 0 {
				var again []int
				for some := range slices.Chunk(left, 50) {
					var out []byte
					for _, k := range some {
						out = append(append(append(out, "NEXT "...), name(k)...), '\n')
					}
					_, err := conn.Write(out)
					nodes.Check(err)
					for _, k := range some {
						line, err := in.ReadString('\n')
						nodes.Check(err)
						if v, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil {
							b.saw(k, v)
						} else {
							again = append(again, k)
						}
					}
				}
				if left = again; len(left) > 0 {
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	group.Wait()
	return time.Since(began).Seconds()
}

func dial() net.Conn {
	c, err := net.Dial("tcp", address)
	nodes.Check(err)
	return c
}

// load asks for one name after the other, perSecond of them a second, and returns how long each request took, sorted.
// A request counts from the moment at which it is due.
func (b *bench) load(perSecond int, d time.Duration) (all []time.Duration) {
	var group sync.WaitGroup
	var mu sync.Mutex
	began := time.Now()
	for c := range conns {
		group.Go(func() {
			took := b.drive(c, float64(perSecond)/conns, began, d)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	group.Wait()
	slices.Sort(all)
	return all
}

type sent struct {
	k  int
	at time.Time
}

func (b *bench) drive(c int, perSecond float64, began time.Time, d time.Duration) (took []time.Duration) {
	conn := dial()
	defer conn.Close()
	flying := make(chan sent, 1<<15) // if more are on their way, the next ones are sent late, and count from when they were due
	go func() {
		defer close(flying)
		k := c
		for done := 0; ; time.Sleep(tick) {
			passed := min(time.Since(began), d)
			var out []byte
			for ; float64(done) < passed.Seconds()*perSecond; done++ {
				k %= len(b.last)
				at := began.Add(time.Duration(float64(done) / perSecond * float64(time.Second)))
				flying <- sent{k, at.Add(tick)} // requests of one tick are sent together
				out = append(append(append(out, "NEXT "...), name(k)...), '\n')
				k += conns
			}
			if _, err := conn.Write(out); err != nil || passed == d {
				return
			}
		}
	}()
	in := bufio.NewReader(conn)
	for s := range flying {
		line, err := in.ReadString('\n')
		nodes.Check(err)
		v, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			if b.refused.Add(1) == 1 {
				log.Printf("the first refusal: %s: %s", name(s.k), line)
			}
			continue
		}
		b.saw(s.k, v)
		took = append(took, max(0, time.Since(s.at)))
	}
	return took
}

// meter is a counter of a process at one moment.
type meter struct {
	pid  int
	read func(pid int) int64
	was  int64
}

func (m meter) since() time.Duration { return time.Duration(m.read(m.pid) - m.was) }

func written(pid int) meter { return meter{pid, bytesWritten, bytesWritten(pid)} }
func cpu(pid int) meter     { return meter{pid, nanoseconds, nanoseconds(pid)} }

// bytesWritten returns what a process has had written to disks.
func bytesWritten(pid int) int64 { return nodes.Field(fmt.Sprintf("/proc/%d/io", pid), "write_bytes:") }

// nanoseconds returns the processor time of a process.
func nanoseconds(pid int) (sum int64) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range tasks {
		data, _ := os.ReadFile(file)
		n, _ := strconv.ParseInt(strings.SplitN(string(data), " ", 2)[0], 10, 64)
		sum += n
	}
	return sum
}

// files returns the size of what sequences have in the state directory, in MB.
func (b *bench) files() float64 {
	var sum int64
	all, _ := filepath.Glob(b.dir + "/sequences.*")
	for _, file := range all {
		if fi, err := os.Stat(file); err == nil {
			sum += fi.Size()
		}
	}
	return float64(sum) / 1e6
}
