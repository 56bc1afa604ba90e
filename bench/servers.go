//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/flaked/flaked/bench/local"
)

// process is a server that runs.
type process struct {
	*local.Process
	log  string
	name string // the cluster's, of a node
	tcp  string // host:port, or empty
	unix string // path, or empty
}

// at returns the server's address on a network for the generator's --addr, and whether the
// server listens on that network.
func (p *process) at(network string) (string, bool) {
	if network == "unix" {
		return "unix:" + p.unix, p.unix != ""
	}
	return p.tcp, p.tcp != ""
}

// address returns the server's address on a network for net.Dial.
func (p *process) address(network string) string {
	if network == "unix" {
		return p.unix
	}
	return p.tcp
}

// farm starts servers on the servers' core, and keeps their files in one directory.
type farm struct {
	o       options
	dir     string
	zk      string
	peers   map[string]string // paths of programs
	lib     string
	cluster int
	running []*process
}

func newFarm(o options) (*farm, error) {
	dir, err := os.MkdirTemp("", "flaked-bench-")
	if err != nil {
		return nil, err
	}
	f := &farm{o: o, dir: dir, peers: map[string]string{}}
	if o.only == greedyCase { // needs only the node
		return f, nil
	}
	return f, f.findPeers()
}

// findPeers finds the other servers, and starts a ZooKeeper.
func (f *farm) findPeers() error {
	peers := exec.Command("bench/peers.sh")
	peers.Stderr = os.Stderr
	out, err := peers.Output()
	if err != nil {
		return fmt.Errorf("bench/peers.sh: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if name, path, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			f.peers[name] = path
		}
	}
	f.lib = f.peers["lib"]
	f.zk, err = local.StartZooKeeper(f.zkDir())
	return err
}

// zkDir returns the data directory of the farm's ZooKeeper.
func (f *farm) zkDir() string { return filepath.Join(f.dir, "zk") }

func (f *farm) close() {
	for _, p := range f.running {
		p.Stop()
	}
	if f.zk != "" {
		_ = local.StopZooKeeper(f.zkDir())
	}
	_ = os.RemoveAll(f.dir)
}

// program returns the contender whose server a contender uses. Some contenders ask one
// server in two ways.
func program(c Contender) Contender {
	switch c {
	case flakedRESP:
		return flaked
	case redisLine:
		return redis
	case flakedNext, flakedIncr, flakedSwitching, flakedSteady:
		return flaked
	}
	return c
}

// start starts a contender's server, which listens at least on network. A server that can
// listen on both networks does.
func (f *farm) start(ctx context.Context, c Contender, network string) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	f.cluster++
	name := fmt.Sprintf("server-%d", f.cluster)
	p := &process{name: name, tcp: fmt.Sprintf("127.0.0.1:%d", port), unix: filepath.Join(f.dir, name+".sock"), log: filepath.Join(f.dir, name+".log")}
	where := p.tcp
	if network == "unix" {
		where = "unix:" + p.unix
	}
	one := func() { // listens on one network only
		if network == "unix" {
			p.tcp = ""
		} else {
			p.unix = ""
		}
	}
	var args []string
	switch c {
	case floorC:
		args = []string{filepath.Join(f.o.bin, "floor-c"), where}
		one()
	case floorC1000:
		args = []string{filepath.Join(f.o.bin, "floor-c"), where, "1000"}
		one()
	case floorGo:
		args = []string{filepath.Join(f.o.bin, "floor-go"), where}
		one()
	case flaked, flakedWide, flakedSpin, flakedBefore, flakedWideBefore:
		args = []string{
			f.flaked(c), "serve", "--zk", f.zk, "--bootstrap", "--cluster", name, "--confirm-time", "6s", "--admin", "off", "--log-level", "warn",
			"--listen", p.tcp, "--listen", "unix:" + p.unix, "--state-dir", filepath.Join(f.dir, name+".state"),
		}
		switch c {
		case flakedWide, flakedWideBefore:
			args = append(args, "--layout", "time=41@1ms,worker=2,sequence=20,epoch=2020-01-01T00:00:00Z")
		case flakedSpin:
			args = append(args, "--spin", "20us")
		}
	case redis:
		args = []string{
			f.peers["redis-server"], "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--unixsocket", p.unix, "--save", "",
			"--appendonly", "no", "--maxclients", "15000", "--daemonize", "no", "--dir", f.dir,
		}
	case memcached:
		args = []string{f.peers["memcached"], "-t", "1", "-m", "64", "-c", "15000", "-U", "0", "-u", "root"} // memcached ignores -u unless root starts it
		if network == "unix" {
			args = append(args, "-s", p.unix)
		} else {
			args = append(args, "-l", "127.0.0.1", "-p", fmt.Sprint(port))
		}
		one()
	}
	if err := f.launch(ctx, p, args); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	if c == memcached { // incr needs an existing key
		if _, err := local.Ask(network, p.address(network), "set x 0 0 1\r\n0\r\n"); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (f *farm) launch(ctx context.Context, p *process, args []string) error {
	// env puts the libraries of the peers before those of the system, if they were unpacked.
	command := []string{"-c", fmt.Sprint(f.o.serverCore)}
	if f.lib != "" {
		command = append(command, "env", "LD_LIBRARY_PATH="+f.lib)
	}
	var err error
	if p.Process, err = local.Start(p.log, "taskset", append(command, args...)...); err != nil {
		return err
	}
	f.running = append(f.running, p)
	return f.await(ctx, p, len(args) > 1 && args[1] == "serve")
}

// flaked returns the path of the program of a contender that is a flaked.
func (f *farm) flaked(c Contender) string {
	switch c {
	case flakedBefore, flakedWideBefore:
		return f.o.before
	}
	return filepath.Join(f.o.bin, "flaked")
}

// startDev starts a node without ZooKeeper, on TCP only.
func (f *farm) startDev(ctx context.Context, c Contender) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p := &process{tcp: fmt.Sprintf("127.0.0.1:%d", port), log: filepath.Join(f.dir, "dev.log")}
	args := []string{f.flaked(c), "serve", "--dev", "--listen", p.tcp, "--admin", "off", "--log-level", "warn"}
	if c == flakedGoroutines {
		args = append(args, "--engine", "goroutines")
	}
	return p, f.launch(ctx, p, args)
}

// await waits up to 30 s until a server accepts connections. If ready is set, it waits until
// the server, a node, is ready.
func (f *farm) await(ctx context.Context, p *process, ready bool) error {
	deadline := time.Now().Add(30 * time.Second)
	for ctx.Err() == nil {
		network := "tcp"
		if p.tcp == "" {
			network = "unix"
		}
		c, err := dial(p, network)
		if err == nil {
			err = c.Close()
		}
		if err == nil && ready {
			var reply string
			if reply, err = local.Ask(network, p.address(network), "READY\n"); err == nil && !strings.HasPrefix(reply, "OK") {
				err = errors.New(strings.TrimSpace(reply))
			}
		}
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || p.Ended() {
			text, _ := os.ReadFile(p.log)
			return fmt.Errorf("the server is not ready: %w: %s", err, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

func dial(p *process, network string) (net.Conn, error) {
	return net.DialTimeout(network, p.address(network), 5*time.Second)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
