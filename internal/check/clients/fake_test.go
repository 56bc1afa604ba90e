package clients

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// fake is a node that follows a script. The test's end closes it.
type fake struct {
	t      *testing.T
	letter string
	spec   nodeSpec
	addr   string // for the client
	cert   *tls.Config

	mu          sync.Mutex // guards what follows
	cluster     string
	script, seq []reply
	ready       []string
	next        int64            // the next number that it serves
	keyed       map[string]int64 // values by sequence and key
	listener    net.Listener     // nil while it is down
	open        map[net.Conn]bool
	asked       int
	connections int
	probed      int
}

// spacing is the distance between the first numbers of two nodes.
const spacing = 1_000_000

func newFake(t *testing.T, i int, spec nodeSpec, cert *tls.Config) *fake {
	n := &fake{t: t, letter: string(rune('a' + i)), spec: spec, script: spec.Script, seq: spec.Seq, ready: spec.Ready,
		next: int64(i+1)*spacing + 1, keyed: make(map[string]int64), open: make(map[net.Conn]bool)}
	switch spec.On {
	case "unix":
		n.addr = "unix:" + filepath.Join(t.TempDir(), n.letter)
	case "ipv6":
		n.addr = fmt.Sprintf("[::1]:%d", zktest.Port(t))
	default:
		n.addr = fmt.Sprintf("127.0.0.1:%d", zktest.Port(t))
	}
	if spec.TLS {
		n.cert = cert
	}
	t.Cleanup(n.stop)
	switch {
	case spec.UpAfterMs > 0:
		up := time.AfterFunc(time.Duration(spec.UpAfterMs)*time.Millisecond, n.start)
		t.Cleanup(func() { up.Stop() })
	case !spec.Down:
		n.start()
	}
	return n
}

// start makes the node listen.
func (n *fake) start() {
	network, address := "tcp", n.addr
	if n.spec.On == "unix" {
		network, address = "unix", n.addr[len("unix:"):]
	}
	l, err := net.Listen(network, address)
	if err != nil {
		n.t.Errorf("node %s: %v", n.letter, err)
		return
	}
	n.mu.Lock()
	n.listener = l
	if n.cluster == "" {
		n.cluster = cmp.Or(n.spec.Cluster, "prod")
	} else {
		n.cluster = cmp.Or(n.spec.Later, n.cluster)
	}
	n.mu.Unlock()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			n.accept(l, nc)
		}
	}()
}

func (n *fake) accept(l net.Listener, nc net.Conn) {
	if n.cert != nil && !n.spec.Mute {
		nc = tls.Server(nc, n.cert)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listener != l {
		_ = nc.Close()
		return
	}
	n.open[nc] = true
	if n.spec.Mute {
		return
	}
	go func() {
		newFakeConn(n, nc).serve()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, nc)
	}()
}

// stop resets all connections, as kill -9 does, and refuses new ones.
func (n *fake) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listener != nil {
		_ = n.listener.Close()
		n.listener = nil
	}
	for nc := range n.open {
		if t, ok := nc.(*tls.Conn); ok {
			nc = t.NetConn() // its own Close may wait
		}
		if t, ok := nc.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		_ = nc.Close() // before stop returns: else the next request may come over it
	}
	clear(n.open)
}

// who is the reply to WORKER, and whether the node belongs to the cluster that is wanted.
func (n *fake) who(wanted string) (text string, ours bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fields := fmt.Sprintf("cluster=%s cluster_uuid=uuid-of-%s", n.cluster, n.cluster)
	if wanted != "" && wanted != n.cluster && wanted != "uuid-of-"+n.cluster {
		return fmt.Sprintf("-WRONGNODE reason=other-cluster %s this node does not belong to %s", fields, wanted), false
	}
	return "worker=0 term=1 node=" + n.letter + " name=" + n.letter + " state=serving " + fields, true
}

// used counts a connection that is asked for more than the cluster.
func (n *fake) used() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connections++
}

// requests returns how many requests for IDs or values the node has had.
func (n *fake) requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// step returns what to do at a request, which it counts.
func (n *fake) step(ofSequence bool) reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	script := &n.script
	if ofSequence && n.seq != nil {
		script = &n.seq
	}
	if len(*script) == 0 {
		return reply{}
	}
	r := (*script)[0]
	if !r.Always {
		*script = (*script)[1:]
	}
	return r
}

// readiness is the reply to READY.
func (n *fake) readiness() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.probed++
	switch {
	case n.spec.Unready:
		return "-NOTREADY not yet"
	case len(n.ready) == 0:
		return "OK"
	}
	text := n.ready[0]
	n.ready = n.ready[1:]
	return text
}

// take returns the first of count numbers.
func (n *fake) take(count int) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next += int64(count)
	return n.next - int64(count)
}

// takeKeyed returns the value of a key.
func (n *fake) takeKeyed(name, key string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.keyed[name+" "+key]
	if !ok {
		v = n.next
		n.next++
		n.keyed[name+" "+key] = v
	}
	return v
}
