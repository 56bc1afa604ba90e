//go:build unix

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// zooKeeper is one server or three, with ZooKeeper's usual tick of 2 s.
type zooKeeper struct {
	run     *run
	clients []int // ports
	servers []*exec.Cmd
}

var ports struct {
	sync.Mutex
	taken map[int]bool
}

// freePort returns a port that this process has not returned before. It lies below the range from
// which the kernel takes ports for outgoing connections.
func freePort() int {
	ports.Lock()
	defer ports.Unlock()
	for {
		port := 15000 + rand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			continue
		}
		l.Close()
		if !ports.taken[port] {
			if ports.taken == nil {
				ports.taken = map[int]bool{}
			}
			ports.taken[port] = true
			return port
		}
	}
}

func startZooKeeper(r *run, servers int) *zooKeeper {
	z := &zooKeeper{run: r, servers: make([]*exec.Cmd, servers)}
	var members strings.Builder
	for i := range servers {
		z.clients = append(z.clients, freePort())
		fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d\n", i+1, freePort(), freePort())
	}
	for i := range servers {
		must(os.MkdirAll(z.data(i), 0o700))
		config := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\nclientPort=%d\n"+
			"clientPortAddress=127.0.0.1\n"+
			"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n", z.data(i), z.clients[i])
		if servers > 1 {
			config += members.String()
			must(os.WriteFile(filepath.Join(z.data(i), "myid"), []byte(strconv.Itoa(i+1)), 0o600))
		}
		must(os.WriteFile(z.data(i)+".cfg", []byte(config), 0o600))
	}
	z.startAll()
	return z
}

func (z *zooKeeper) data(i int) string { return filepath.Join(z.run.dir, fmt.Sprint("zk", i)) }

func (z *zooKeeper) addrs() string {
	var all []string
	for _, port := range z.clients {
		all = append(all, fmt.Sprint("127.0.0.1:", port))
	}
	return strings.Join(all, ",")
}

func (z *zooKeeper) start(i int) {
	z.servers[i] = z.run.spawn(fmt.Sprint("zk", i, ".log"), os.Getenv("FLAKED_ZK_JAVA"), "-Xmx64m", "-XX:+UseSerialGC",
		"-XX:TieredStopAtLevel=1",
		"-Dzookeeper.jmx.log4j.disable=true", "-cp", os.Getenv("FLAKED_ZK_CLASSPATH"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", z.data(i)+".cfg")
}

// startAll starts the servers and blocks until all serve.
func (z *zooKeeper) startAll() {
	for i := range z.servers {
		z.start(i)
	}
	z.await()
}

// ask returns a server's answer to a four-letter word, or "".
func (z *zooKeeper) ask(i int, word string) string {
	c, err := net.DialTimeout("tcp", fmt.Sprint("127.0.0.1:", z.clients[i]), time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	must(c.SetDeadline(time.Now().Add(time.Second)))
	if _, err := io.WriteString(c, word); err != nil {
		return ""
	}
	reply, _ := io.ReadAll(c)
	return string(reply)
}

// await blocks until all servers serve.
func (z *zooKeeper) await() {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		serving := 0
		for i := range z.servers {
			if strings.Contains(z.ask(i, "srvr"), "Mode: ") {
				serving++
			}
		}
		if serving == len(z.servers) {
			return
		}
	}
	panic("ZooKeeper does not serve after a minute: " + z.run.dir)
}

// counter returns the sum of a counter of `mntr` over the servers.
func (z *zooKeeper) counter(name string) (sum int) {
	for i := range z.servers {
		for line := range strings.Lines(z.ask(i, "mntr")) {
			if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
				n, err := strconv.Atoi(fields[1])
				must(err)
				sum += n
			}
		}
	}
	return sum
}

func (z *zooKeeper) kill() {
	for _, s := range z.servers {
		must(s.Process.Kill())
		_ = s.Wait()
	}
}

// outage kills the servers and starts them again so that they serve after about the given time.
// It returns the time for which they did not serve.
func (z *zooKeeper) outage(away time.Duration) time.Duration {
	const startup = 600 * time.Millisecond // of Java, on an idle machine
	since := time.Now()
	z.kill()
	time.Sleep(away - startup)
	z.startAll()
	return time.Since(since)
}

// wipe kills the servers, removes their data and starts them again.
func (z *zooKeeper) wipe() {
	z.kill()
	for i := range z.servers {
		must(os.RemoveAll(filepath.Join(z.data(i), "version-2")))
	}
	z.startAll()
}
