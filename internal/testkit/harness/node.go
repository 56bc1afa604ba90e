//go:build unix

package harness

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	core "github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/worker"
)

// Site is a cluster under test: the address of its ZooKeeper, the flags of its nodes, and the IDs and values that the
// nodes have issued.
type Site struct {
	T       testing.TB
	Connect string
	Flags   []string
	IDs     *History
	Values  *ledger
	nodes   int
}

// NewSite returns a site whose nodes have short times. At the end of the test it checks the
// history.
func NewSite(t testing.TB, connect string, flags ...string) *Site {
	t.Helper()
	s := &Site{
		T: t, Connect: connect, IDs: NewHistory(), Values: NewLedger(),
		Flags: append([]string{
			"--bootstrap", "--heartbeat", "200ms", "--confirm-time", "800ms", "--reserve", "500ms",
			"--zk-session-timeout", SessionTimeout.String(), "--start-timeout", "30s", "--log-format", "text",
		}, flags...),
	}
	t.Cleanup(func() { s.IDs.check(t); s.Values.check(t) })
	return s
}

// Made creates the site's cluster with `flaked cluster init`, and removes --bootstrap from the
// flags of the nodes.
func (s *Site) Made(flags ...string) *Site {
	s.T.Helper()
	s.Flags = Without(s.Flags, "--bootstrap")
	s.Command(append([]string{"cluster", "init"}, flags...)...).Wants(s.T, 0, "created cluster default: ")
	return s
}

// Without returns the flags without one flag, which must take no value.
func Without(flags []string, flag string) []string {
	var rest []string
	for _, f := range flags {
		if f != flag {
			rest = append(rest, f)
		}
	}
	return rest
}

// Node is one state directory and the processes that run on it, one at a time.
type Node struct {
	Site    *Site
	Name    string
	Dir     string
	connect string
	Flags   []string // the site's flags, then the node's own
	Listen  string
	Build   *Build // of the next process; nil for clocked
	Proc    *Process
	ID      int             // in the history
	Links   links           // to the servers of ZooKeeper; nil without network
	Disk    *faultdisk.Disk // of its own; nil for the machine's
}

// Node returns a node that has never run.
func (s *Site) Node(flags ...string) *Node {
	name := fmt.Sprintf("n%d", s.nodes)
	s.nodes++
	return &Node{
		Site: s, ID: s.nodes - 1, Name: name, Dir: filepath.Join(s.T.TempDir(), "state"), connect: s.Connect,
		Flags: append(append([]string{}, s.Flags...), flags...), Listen: "127.0.0.1:0",
	}
}

func (s *Site) Started(flags ...string) *Node {
	s.T.Helper()
	return s.Node(flags...).Start()
}

// OnPorts returns nodes that keep their addresses: clients go on over restarts.
func (s *Site) OnPorts(count int) (nodes []*Node) {
	for range count {
		n := s.Node()
		n.Listen = fmt.Sprintf("127.0.0.1:%d", zktest.Port(s.T))
		nodes = append(nodes, n)
	}
	return nodes
}

// StartedTogether starts several nodes at once and waits until all are ready.
func (s *Site) StartedTogether(count int) []*Node {
	s.T.Helper()
	nodes := make([]*Node, count)
	for i := range nodes {
		nodes[i] = s.Started()
	}
	for _, n := range nodes {
		n.Ready()
	}
	return nodes
}

// Start starts a process on the node's directory and returns at once.
func (n *Node) Start() *Node {
	n.Site.T.Helper()
	if n.Proc != nil && n.Proc.Running() {
		n.Site.T.Fatalf("%s runs already", n.Name)
	}
	n.Proc = Launch(n.Site.T, nil, n.Name, n.binary(), n.Args()...)
	return n
}

func (n *Node) binary() string {
	if n.Build != nil {
		return n.Build.Binary(n.Site.T)
	}
	return Clocked.Binary(n.Site.T)
}

// Args returns the arguments of the node's process.
func (n *Node) Args() []string {
	return append([]string{"serve", "--zk", n.connect, "--state-dir", n.Dir, "--listen", n.Listen, "--name", n.Name},
		n.Flags...)
}

var listening = regexp.MustCompile(`lineproto: .*address=(\S+:\d+)`)

// Address returns the address that the running process serves on. If the kernel chose the port,
// address takes it from the log, and fails until the log has it.
func (n *Node) Address() (network, addr string, err error) {
	if path, ok := strings.CutPrefix(n.Listen, "unix:"); ok {
		return "unix", path, nil
	}
	if !strings.HasSuffix(n.Listen, ":0") {
		return "tcp", n.Listen, nil
	}
	m := listening.FindStringSubmatch(n.Proc.Log())
	if m == nil {
		return "", "", errors.New("it has not said yet where it serves")
	}
	return "tcp", m[1], nil
}

// Ask sends one request on a new connection and returns the first line of the reply.
func (n *Node) Ask(request string) (string, error) {
	c, err := n.Dial()
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.Ask(request)
}

// Until waits for a condition, and fails the test if the process ends first.
func (n *Node) Until(what string, ok func() bool) {
	n.Site.T.Helper()
	done := Within(Patience, func() bool { return !n.Proc.Running() || ok() })
	if !n.Proc.Running() {
		n.Site.T.Fatalf("%s: ended with %d before it was so: %s", n.Name, n.Proc.Exit(), what)
	}
	if !done {
		line, err := n.Ask("WORKER")
		n.Site.T.Fatalf("%s: after %s still not: %s (%s %v)", n.Name, Patience, what, line, err)
	}
}

func (n *Node) IsReady() bool {
	answer, err := n.Ask("READY")
	return err == nil && answer == "OK"
}

func (n *Node) Ready() *Node {
	n.Site.T.Helper()
	n.Until("ready", n.IsReady)
	return n
}

// Identity is the reply to WORKER.
type Identity struct {
	Worker int // -1 for none
	Term   int
	UUID   string
	State  string
}

var workerLine = regexp.MustCompile(`^worker=(\d+|none) term=(\d+) node=(\S*) name=\S* state=(\S+)(?: cluster=\S+ cluster_uuid=\S+)?$`)

func (n *Node) TryIdentity() (Identity, error) {
	line, err := n.Ask("WORKER")
	if err != nil {
		return Identity{}, err
	}
	m := workerLine.FindStringSubmatch(line)
	if m == nil {
		return Identity{}, fmt.Errorf("WORKER answers %q", line)
	}
	id := Identity{Worker: -1, UUID: m[3], State: m[4]}
	if m[1] != "none" {
		id.Worker, _ = strconv.Atoi(m[1])
	}
	id.Term, _ = strconv.Atoi(m[2])
	return id, nil
}

func (n *Node) Identity() Identity {
	n.Site.T.Helper()
	id, err := n.TryIdentity()
	if err != nil {
		n.Site.T.Fatalf("%s: %v", n.Name, err)
	}
	return id
}

func (n *Node) Worker() int { n.Site.T.Helper(); return n.Identity().Worker }

// Get returns k IDs. It fails the test unless the node issues them, and unless the first one is
// of the worker that the node reports.
func (n *Node) Get(k int) []worker.ID {
	n.Site.T.Helper()
	c, err := n.Dial()
	if err != nil {
		n.Site.T.Fatalf("%s: %v", n.Name, err)
	}
	defer c.Close()
	ids, err := c.Get(k)
	if err != nil {
		n.Site.T.Fatalf("%s: GET %d: %v", n.Name, k, err)
	}
	if w := n.Worker(); n.Site.IDs.Worker(ids[0]) != int64(w) {
		n.Site.T.Errorf("%s: hands out %s, and is worker %d", n.Name, ids[0], w)
	}
	return ids
}

// Stat returns a figure of STATS, or "" if STATS does not have it. After an error it returns the
// text of the error.
func (n *Node) Stat(name string) string {
	c := &Client{Node: n, Timeout: CallTimeout}
	defer c.Close()
	value, err := c.Stat(name)
	if err != nil {
		return err.Error()
	}
	return value
}

// Stat returns a figure of STATS, or "" if STATS does not have it.
func (c *Client) Stat(name string) (value string, err error) {
	line, err := c.Ask("STATS")
	for ; err == nil && line != "END"; line, err = c.Line() {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			value = v
		}
	}
	return value, err
}

// StateFile returns the path of the node's state file.
func (n *Node) StateFile() string { return filepath.Join(n.Dir, "flaked.state") }

func (n *Node) Journal() string { return filepath.Join(n.Dir, "sequences.journal") }

// Kill ends the process by SIGKILL and waits until it has ended.
func (n *Node) Kill() { n.Proc.Kill() }

// Stop ends the process by SIGTERM. It fails the test unless the exit code is 0.
func (n *Node) Stop() {
	n.Site.T.Helper()
	n.Proc.Signal(syscall.SIGTERM)
	if code := n.Proc.Exit(); code != 0 {
		n.Site.T.Errorf("%s: exit %d after SIGTERM", n.Name, code)
	}
}

// Fails waits until the process ends. It fails the test unless the exit code is code and the log
// matches the regular expression message.
func (n *Node) Fails(code int, message string) {
	n.Site.T.Helper()
	got := n.Proc.Exit()
	if log := n.Proc.Log(); got != code || !regexp.MustCompile(message).MatchString(log) {
		n.Site.T.Errorf("%s: exit %d, want %d and a message like %q:\n%s", n.Name, got, code, message, log)
	}
}

// Stored returns the record in the state directory.
func (n *Node) Stored() core.LocalRecord {
	n.Site.T.Helper()
	loaded, err := localcache.ReadState(n.Dir)
	if err != nil {
		n.Site.T.Fatal(err)
	}
	rec, err := core.DecodeRecord(loaded.Record)
	if err != nil {
		n.Site.T.Fatalf("%s: %v: %+v", n.Name, err, loaded)
	}
	return rec
}
