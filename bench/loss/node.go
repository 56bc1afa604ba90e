//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// run is the measurement of one binary with one ZooKeeper.
type run struct {
	binary, group, dir string
	results            *table
	zk                 *zooKeeper
	nodes              int
	cleanups           []func()
}

func (r *run) add(what, text string) { r.results.add(r.group, what, r.binary, text) }

func (r *run) end() {
	for _, clean := range r.cleanups {
		clean()
	}
}

// spawn starts a process that dies with this one, and appends its output to a file in r.dir.
func (r *run) spawn(logName, name string, args ...string) *exec.Cmd {
	must(os.MkdirAll(r.dir, 0o700))
	log, err := os.OpenFile(filepath.Join(r.dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	defer log.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithUs()
	must(cmd.Start())
	r.cleanups = append(r.cleanups, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// flaked runs a command of the binary and returns the first line of its output.
func (r *run) flaked(args ...string) (string, error) {
	out, err := exec.Command(r.binary, append(args, "--zk", r.zk.addrs())...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}

// create creates a sequence. It tries again until the nodes have made /seq.
func (r *run) create(args ...string) {
	var out string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var err error
		if out, err = r.flaked(append([]string{"seq", "create"}, args...)...); err == nil {
			return
		}
	}
	panic(fmt.Sprintf("seq create %v: %s", args, out))
}

// node is a state directory, and a process on it while it runs.
type node struct {
	run   *run
	name  string
	addr  string
	cmd   *exec.Cmd
	since time.Time // the last start
}

func (r *run) node() *node {
	r.nodes++
	return &node{run: r, name: fmt.Sprintf("node%d", r.nodes), addr: fmt.Sprint("127.0.0.1:", freePort())}
}

func (n *node) start(flags ...string) *node {
	r := n.run
	n.since = time.Now()
	n.cmd = r.spawn(n.name+".log", r.binary, append([]string{"serve", "--zk", r.zk.addrs(), "--state-dir",
		filepath.Join(r.dir, n.name),
		"--listen", n.addr, "--admin", "off", "--name", n.name, "--log-format", "text"}, flags...)...)
	return n
}

func (n *node) stop() { must(n.cmd.Process.Signal(syscall.SIGTERM)); _ = n.cmd.Wait() }
func (n *node) kill() { must(n.cmd.Process.Kill()); _ = n.cmd.Wait() }

// conn is a connection to a node. It is opened again after an error.
type conn struct {
	addr string
	net  net.Conn
	in   *bufio.Reader
}

// ask sends a request and returns the first line of the reply. ok is false after a refusal or
// if the node cannot be reached.
func (c *conn) ask(request string) (line string, ok bool) {
	var err error
	if c.net == nil {
		if c.net, err = net.DialTimeout("tcp", c.addr, time.Second); err != nil {
			c.net = nil
			return "connection refused", false
		}
		c.in = bufio.NewReader(c.net)
	}
	must(c.net.SetDeadline(time.Now().Add(30 * time.Second)))
	if _, err = fmt.Fprintln(c.net, request); err == nil {
		line, err = c.in.ReadString('\n')
	}
	if err != nil {
		c.close()
		return "connection ended", false
	}
	return strings.TrimSpace(line), !strings.HasPrefix(line, "-")
}

func (c *conn) close() {
	if c.net != nil {
		c.net.Close()
		c.net = nil
	}
}

func (n *node) ask(request string) (string, bool) {
	c := &conn{addr: n.addr}
	defer c.close()
	return c.ask(request)
}

// first asks until the node answers, and returns the time since its start.
func (n *node) first(request string) time.Duration {
	c := &conn{addr: n.addr}
	defer c.close()
	var line string
	for time.Since(n.since) < 2*time.Minute {
		var ok bool
		if line, ok = c.ask(request); ok {
			return time.Since(n.since)
		}
		time.Sleep(5 * time.Millisecond)
	}
	panic(fmt.Sprintf("%s: %s: after two minutes still %s", n.name, request, line))
}

// pace is the time between two requests of a client.
const pace = 10 * time.Millisecond

// load asks for IDs and values for a time.
func (n *node) load(d time.Duration) {
	c := &conn{addr: n.addr}
	defer c.close()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pace) {
		c.ask("GET")
		c.ask("NEXT order")
	}
}

// watch is a client that asks again and again, until stop. After a refusal it asks the next node.
type watch struct {
	end  chan struct{}
	done sync.WaitGroup
	gap  time.Duration // the longest time from a request that failed to the next reply
	all  time.Duration // the sum of such times
	why  string        // the last refusal in the longest one
}

func watchAt(request string, nodes ...*node) *watch {
	w := &watch{end: make(chan struct{})}
	w.done.Go(func() { w.run(request, nodes) })
	return w
}

func (w *watch) run(request string, nodes []*node) {
	var conns []*conn
	for _, n := range nodes {
		c := &conn{addr: n.addr}
		defer c.close()
		conns = append(conns, c)
	}
	at, why, failing := 0, "", false
	var asked time.Time
	note := func() {
		d := time.Since(asked)
		w.all += d
		if d > w.gap {
			w.gap, w.why = d, why
		}
	}
	for {
		if !failing {
			asked = time.Now()
		}
		line, ok := conns[at].ask(request)
		switch {
		case ok && (failing || time.Since(asked) > pace): // a late answer counts, too
			note()
			failing = false
		case !ok:
			why, failing = line, true
			at = (at + 1) % len(conns)
		}
		select {
		case <-w.end:
			if failing {
				why += ", and still so at the end"
				note()
			}
			return
		case <-time.After(pace):
		}
	}
}

// stop ends the client and returns the longest time without a reply.
func (w *watch) stop() string {
	close(w.end)
	w.done.Wait()
	if w.why == "" {
		return fmt.Sprintf("never (longest reply %.2f s)", w.gap.Seconds())
	}
	return fmt.Sprintf("%.2f s at once, %.2f s in all (%s)", w.gap.Seconds(), w.all.Seconds(), short(w.why))
}

func short(text string) string {
	if len(text) > 90 {
		return text[:90] + "..."
	}
	return text
}

func seconds(ds ...time.Duration) string {
	var all []string
	for _, d := range ds {
		all = append(all, fmt.Sprintf("%.2f", d.Seconds()))
	}
	return strings.Join(all, ", ") + " s"
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
