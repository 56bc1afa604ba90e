package e2e

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

// site is a cluster under test: the address of its ZooKeeper, the flags of its nodes, and the IDs and values that the
// nodes have issued.
type site struct {
	t       testing.TB
	connect string
	flags   []string
	ids     *history
	values  *ledger
	nodes   int
}

// newSite returns a site whose nodes have short times. At the end of the test it checks the
// history.
func newSite(t testing.TB, connect string, flags ...string) *site {
	t.Helper()
	s := &site{
		t: t, connect: connect, ids: newHistory(), values: newLedger(),
		flags: append([]string{
			"--bootstrap", "--heartbeat", "200ms", "--confirm-time", "800ms", "--reserve", "500ms",
			"--zk-session-timeout", "2s", "--start-timeout", "30s", "--log-format", "text",
		}, flags...),
	}
	t.Cleanup(func() { s.ids.check(t); s.values.check(t) })
	return s
}

// made creates the site's cluster with `flaked cluster init`, and removes --bootstrap from the
// flags of the nodes.
func (s *site) made(flags ...string) *site {
	s.t.Helper()
	s.flags = without(s.flags, "--bootstrap")
	s.command(append([]string{"cluster", "init"}, flags...)...).wants(s.t, 0, "created cluster default: ")
	return s
}

// without returns the flags without one flag, which must take no value.
func without(flags []string, flag string) []string {
	var rest []string
	for _, f := range flags {
		if f != flag {
			rest = append(rest, f)
		}
	}
	return rest
}

// node is one state directory and the processes that run on it, one at a time.
type node struct {
	site    *site
	name    string
	dir     string
	connect string
	flags   []string // the site's flags, then the node's own
	listen  string
	build   *build // of the next process; nil for clocked
	proc    *process
	id      int             // in the history
	links   links           // to the servers of ZooKeeper; nil without network
	disk    *faultdisk.Disk // of its own; nil for the machine's
}

// node returns a node that has never run.
func (s *site) node(flags ...string) *node {
	name := fmt.Sprintf("n%d", s.nodes)
	s.nodes++
	return &node{
		site: s, id: s.nodes - 1, name: name, dir: filepath.Join(s.t.TempDir(), "state"), connect: s.connect,
		flags: append(append([]string{}, s.flags...), flags...), listen: "127.0.0.1:0",
	}
}

func (s *site) started(flags ...string) *node {
	s.t.Helper()
	return s.node(flags...).start()
}

// onPorts returns nodes that keep their addresses: clients go on over restarts.
func (s *site) onPorts(count int) (nodes []*node) {
	for range count {
		n := s.node()
		n.listen = fmt.Sprintf("127.0.0.1:%d", zktest.Port(s.t))
		nodes = append(nodes, n)
	}
	return nodes
}

// startedTogether starts several nodes at once and waits until all are ready.
func (s *site) startedTogether(count int) []*node {
	s.t.Helper()
	nodes := make([]*node, count)
	for i := range nodes {
		nodes[i] = s.started()
	}
	for _, n := range nodes {
		n.ready()
	}
	return nodes
}

// start starts a process on the node's directory and returns at once.
func (n *node) start() *node {
	n.site.t.Helper()
	if n.proc != nil && n.proc.running() {
		n.site.t.Fatalf("%s runs already", n.name)
	}
	n.proc = launch(n.site.t, nil, n.name, n.binary(), n.args()...)
	return n
}

func (n *node) binary() string {
	if n.build != nil {
		return n.build.binary(n.site.t)
	}
	return clocked.binary(n.site.t)
}

// args returns the arguments of the node's process.
func (n *node) args() []string {
	return append([]string{"serve", "--zk", n.connect, "--state-dir", n.dir, "--listen", n.listen, "--name", n.name},
		n.flags...)
}

var listening = regexp.MustCompile(`lineproto: .*address=(\S+:\d+)`)

// address returns the address that the running process serves on. If the kernel chose the port,
// address takes it from the log, and fails until the log has it.
func (n *node) address() (network, addr string, err error) {
	if path, ok := strings.CutPrefix(n.listen, "unix:"); ok {
		return "unix", path, nil
	}
	if !strings.HasSuffix(n.listen, ":0") {
		return "tcp", n.listen, nil
	}
	m := listening.FindStringSubmatch(n.proc.log())
	if m == nil {
		return "", "", errors.New("it has not said yet where it serves")
	}
	return "tcp", m[1], nil
}

// ask sends one request on a new connection and returns the first line of the reply.
func (n *node) ask(request string) (string, error) {
	c, err := n.dial()
	if err != nil {
		return "", err
	}
	defer c.close()
	return c.ask(request)
}

// until waits for a condition, and fails the test if the process ends first.
func (n *node) until(what string, ok func() bool) {
	n.site.t.Helper()
	done := within(patience, func() bool { return !n.proc.running() || ok() })
	if !n.proc.running() {
		n.site.t.Fatalf("%s: ended with %d before it was so: %s", n.name, n.proc.exit(), what)
	}
	if !done {
		line, err := n.ask("WORKER")
		n.site.t.Fatalf("%s: after %s still not: %s (%s %v)", n.name, patience, what, line, err)
	}
}

func (n *node) isReady() bool {
	answer, err := n.ask("READY")
	return err == nil && answer == "OK"
}

func (n *node) ready() *node {
	n.site.t.Helper()
	n.until("ready", n.isReady)
	return n
}

// identity is the reply to WORKER.
type identity struct {
	worker int // -1 for none
	term   int
	uuid   string
	state  string
}

var workerLine = regexp.MustCompile(`^worker=(\d+|none) term=(\d+) node=(\S*) name=\S* state=(\S+)(?: cluster=\S+ cluster_uuid=\S+)?$`)

func (n *node) tryIdentity() (identity, error) {
	line, err := n.ask("WORKER")
	if err != nil {
		return identity{}, err
	}
	m := workerLine.FindStringSubmatch(line)
	if m == nil {
		return identity{}, fmt.Errorf("WORKER answers %q", line)
	}
	id := identity{worker: -1, uuid: m[3], state: m[4]}
	if m[1] != "none" {
		id.worker, _ = strconv.Atoi(m[1])
	}
	id.term, _ = strconv.Atoi(m[2])
	return id, nil
}

func (n *node) identity() identity {
	n.site.t.Helper()
	id, err := n.tryIdentity()
	if err != nil {
		n.site.t.Fatalf("%s: %v", n.name, err)
	}
	return id
}

func (n *node) worker() int { n.site.t.Helper(); return n.identity().worker }

// get returns k IDs. It fails the test unless the node issues them, and unless the first one is
// of the worker that the node reports.
func (n *node) get(k int) []worker.ID {
	n.site.t.Helper()
	c, err := n.dial()
	if err != nil {
		n.site.t.Fatalf("%s: %v", n.name, err)
	}
	defer c.close()
	ids, err := c.get(k)
	if err != nil {
		n.site.t.Fatalf("%s: GET %d: %v", n.name, k, err)
	}
	if w := n.worker(); n.site.ids.worker(ids[0]) != int64(w) {
		n.site.t.Errorf("%s: hands out %s, and is worker %d", n.name, ids[0], w)
	}
	return ids
}

// stat returns a figure of STATS, or "" if STATS does not have it. After an error it returns the
// text of the error.
func (n *node) stat(name string) string {
	c := &client{node: n, timeout: callTimeout}
	defer c.close()
	value, err := c.stat(name)
	if err != nil {
		return err.Error()
	}
	return value
}

// stat returns a figure of STATS, or "" if STATS does not have it.
func (c *client) stat(name string) (value string, err error) {
	line, err := c.ask("STATS")
	for ; err == nil && line != "END"; line, err = c.line() {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			value = v
		}
	}
	return value, err
}

// stateFile returns the path of the node's state file.
func (n *node) stateFile() string { return filepath.Join(n.dir, "flaked.state") }

func (n *node) journal() string { return filepath.Join(n.dir, "sequences.journal") }

// kill ends the process by SIGKILL and waits until it has ended.
func (n *node) kill() { n.proc.kill() }

// stop ends the process by SIGTERM. It fails the test unless the exit code is 0.
func (n *node) stop() {
	n.site.t.Helper()
	n.proc.signal(syscall.SIGTERM)
	if code := n.proc.exit(); code != 0 {
		n.site.t.Errorf("%s: exit %d after SIGTERM", n.name, code)
	}
}

// fails waits until the process ends. It fails the test unless the exit code is code and the log
// matches the regular expression message.
func (n *node) fails(code int, message string) {
	n.site.t.Helper()
	got := n.proc.exit()
	if log := n.proc.log(); got != code || !regexp.MustCompile(message).MatchString(log) {
		n.site.t.Errorf("%s: exit %d, want %d and a message like %q:\n%s", n.name, got, code, message, log)
	}
}

// stored returns the record in the state directory.
func (n *node) stored() core.LocalRecord {
	n.site.t.Helper()
	loaded, err := localcache.Inspect(n.dir)
	if err != nil {
		n.site.t.Fatal(err)
	}
	rec, err := core.DecodeRecord(loaded.Record)
	if err != nil {
		n.site.t.Fatalf("%s: %v: %+v", n.name, err, loaded)
	}
	return rec
}
