package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/docs"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// docWorld is the environment for the commands of one document. It has a directory for the
// document's paths, a ZooKeeper, and a node. The node is started before the first command that
// needs it.
type docWorld struct {
	t       *testing.T
	doc     string
	dir     string
	zk      string
	replace *strings.Replacer
	exports string
	port    int // of the node
	admin   int
	nodes   int
	node    *harness.Process
}

func newDocWorld(t *testing.T, doc string) *docWorld {
	dir, err := os.MkdirTemp("", "docs") // short, because socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Cleanup(func() { killWithin(dir) })
	w := &docWorld{t: t, doc: doc, dir: dir, zk: zktest.Chroot(t, zktest.Shared(t)), port: freePorts(t)}
	w.admin = w.port + 1
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "bin"), 0o755), os.MkdirAll(filepath.Join(dir, "etc"), 0o755),
		os.MkdirAll(filepath.Join(dir, "home"), 0o755),
		os.MkdirAll(filepath.Join(dir, "walk"), 0o755),
		os.Symlink(harness.Shipped.Binary(t), filepath.Join(dir, "bin/flaked")),
		os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")),
		os.Symlink(filepath.Join(root, "deploy"), filepath.Join(dir, "deploy")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	port, admin := strconv.Itoa(w.port), strconv.Itoa(w.admin)
	pairs := []string{
		"zk1:2181,zk2:2181,zk3:2181", w.zk, "zk1:2181", w.zk,
		"127.0.0.1:7609", "127.0.0.1:" + port, "127.0.0.1 7609", "127.0.0.1 " + port, "in 7609 ", "in " + port + " ",
		"0.0.0.0:7609", "0.0.0.0:" + port, "ids-1:7609", "localhost:" + port,
		"-p 7609", "-p " + port,
		"--duration 60s", "",
		"0.0.0.0:7610", "0.0.0.0:" + admin, "ids-1:7610", "localhost:" + admin, "127.0.0.1:7610", "127.0.0.1:" + admin,
		"127.0.0.1:8080", "127.0.0.1:" + admin, "0.0.0.0:8080", "0.0.0.0:" + admin,
		"127.0.0.1:771", "127.0.0.1:" + strconv.Itoa(freePorts(t)/10), "127.0.0.1:781",
		"127.0.0.1:" + strconv.Itoa(freePorts(t)/10),
		"/etc/flaked/", dir + "/etc/", "/etc/flaked.yaml", dir + "/etc/flaked.yaml", "/var/lib/flaked", dir + "/state",
		"/tmp/", dir + "/",
		"runuser -u flaked -- ", "",
	}
	w.replace = strings.NewReplacer(append(pairs, settingsOf(doc).replace...)...)
	w.write("etc/flaked.yaml", w.replace.Replace(configOfDeploy(t, root)))
	w.write("etc/token", strings.Repeat("7f", 32)+"\n") // the file names it
	return w
}

// configOfDeploy returns the configuration file that docs/deploy.md shows.
func configOfDeploy(t *testing.T, root string) string {
	text, err := os.ReadFile(filepath.Join(root, "docs/deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range docs.Blocks(string(text)) {
		if strings.HasPrefix(b, "# /etc/flaked.yaml\n") {
			return b
		}
	}
	t.Fatal("docs/deploy.md shows no configuration file")
	return ""
}

// nextPorts is the first of the ports that freePorts returns next. It is package-level, because ports belong to the
// machine.
var nextPorts atomic.Int64

// freePorts returns the first of ten consecutive ports on which no process listens. They are below
// the ports that the kernel uses for outgoing connections. Each call returns other ports.
func freePorts(t testing.TB) int {
	nextPorts.CompareAndSwap(0, 10_000+10*rand.Int64N(400))
	for range 200 {
		first := int(nextPorts.Add(10))
		free := true
		for port := first; port < first+10; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatal("found no free ports")
	return 0
}

func (w *docWorld) write(name, text string) {
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// killWithin kills the processes whose working directory is dir, which commands have left running.
func killWithin(dir string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // finds none without /proc
	for _, link := range links {
		if cwd, err := os.Readlink(link); err != nil || cwd != dir {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// environment returns the variables that replace the defaults of the documents by the addresses
// and paths of this test, and shorten the times of a cluster.
func (w *docWorld) environment() []string {
	return append([]string{
		"PATH=" + w.dir + "/bin:" + os.Getenv("PATH"), "HOME=" + w.dir + "/home",
		"FLAKED_ZK=" + w.zk, "FLAKED_ADDR=127.0.0.1:" + strconv.Itoa(w.port),
		"FLAKED_STATE_DIR=" + w.dir + "/state",
		"FLAKED_HEARTBEAT=300ms", "FLAKED_CONFIRM_TIME=1s",
		"FLAKED_DURATION=300ms", "FLAKED_WARMUP=100ms", // of bench
	}, settingsOf(w.doc).env...)
}

// asked starts the node that commands ask, unless it runs.
func (w *docWorld) asked() {
	if w.node != nil {
		return
	}
	name := settingsOf(w.doc).name
	if name == "" {
		name = "vm"
	}
	w.node = w.serve(fmt.Sprintf("flaked serve --bootstrap --name %s --listen 127.0.0.1:%d"+
		" --listen unix:%s/flaked.sock --admin 127.0.0.1:%d --state-dir %s/asked", name, w.port, w.dir, w.admin,
		w.dir), nil)
}

// counts waits until the node issues values of sequences.
func (w *docWorld) counts() {
	w.t.Helper()
	w.asked()
	var out string
	if !harness.Within(harness.Patience, func() bool {
		out, _ = w.shell("bin/flaked seq next nobody", "")
		return strings.Contains(out, "reason=no-sequence")
	}) {
		w.t.Errorf("%s: the node issues no values of sequences: %s", w.doc, out)
	}
}

// serve starts a command that runs a node, and waits until the node serves.
func (w *docWorld) serve(command string, env []string) *harness.Process {
	w.t.Helper()
	name := fmt.Sprintf("node %d of %s", w.nodes, w.doc)
	w.nodes++
	env = append(w.environment(), env...)
	if !strings.Contains(command, "--listen") &&
		!slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "FLAKED_LISTEN=") }) {
		env = append(env, "FLAKED_LISTEN=127.0.0.1:0")
	}
	p := harness.Launch(w.t, append(env, "FLAKED_LOG_FORMAT=text"), name, "bash", "-c", "cd "+w.dir+" && exec "+command)
	if !harness.Within(harness.Patience, func() bool { return !p.Running() || strings.Contains(p.Log(), ": serving: worker=") }) ||
		!p.Running() {
		w.t.Errorf("%s: does not serve: %s\n%s", w.doc, command, harness.LastLines(p.Log(), 20))
	}
	return p
}

// halt stops the node and waits until it has ended.
func (w *docWorld) halt() {
	w.node.Signal(syscall.SIGTERM)
	w.node.Exit()
	w.node = nil
}

// run runs a command and checks its result.
func (w *docWorld) run(c docs.Command) {
	w.t.Helper()
	how, known := howRun[c.Text]
	text := w.replace.Replace(c.Text)
	if how.first != nil {
		how.first(w)
	}
	serves := strings.Contains(c.Text, "flaked serve ") && !strings.Contains(c.Text, " 2>&1 &") &&
		!strings.HasSuffix(c.Text, " --help")
	words := strings.Fields(c.Text)
	switch {
	case !known && (c.Program() != "flaked" || serves):
		w.t.Errorf("%s: it is neither run nor listed: "+
			"say in internal/check/e2e/documents_commands_test.go how it is run, or why it is not", c)
		return
	case serves:
		w.runNode(c, text, how)
		return
	case !how.alone && !slices.Contains(alone, strings.Join(words[:min(2, len(words))], " ")):
		w.asked()
	}
	if c.Program() == "flaked" && words[min(1, len(words)-1)] == "seq" && w.node != nil {
		w.counts()
	}
	if w.node != nil {
		text = strings.ReplaceAll(text, "$(pidof flaked)", strconv.Itoa(w.node.Cmd.Process.Pid))
	}
	if strings.HasPrefix(c.Text, "export ") {
		w.exports += text + "\n"
		return
	}
	builtin := slices.Contains([]string{"flaked", "telnet", "for", "until", "kill"}, c.Program())
	if _, err := exec.LookPath(c.Program()); err != nil && !builtin {
		if os.Getenv("FLAKED_TEST_TOOLS") == "require" {
			w.t.Errorf("%s: %v: scripts/get-tools.sh and get-clients.sh get what is missing", c, err)
		}
		return
	}
	if c.Program() == "telnet" {
		w.check(c, how, w.telnet(c.Output), 0)
		return
	}
	out, code := w.shell(text, how.input(c.Output), how.env...)
	w.check(c, how, out, code)
}

// runNode runs a command that is a node. It is stopped, unless it is for the commands that follow.
func (w *docWorld) runNode(c docs.Command, text string, how how) {
	w.t.Helper()
	if how.stays {
		w.node = w.serve(text, append(how.env, "FLAKED_LISTEN=127.0.0.1:"+strconv.Itoa(w.port)))
		return
	}
	p := w.serve(text, how.env)
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(); code != 0 {
		w.t.Errorf("%s: exit %d after SIGTERM", c, code)
	}
}

// check compares the output and the exit code of a command with those that are expected.
func (w *docWorld) check(c docs.Command, how how, out string, code int) {
	w.t.Helper()
	codes := how.codes
	if len(codes) == 0 {
		codes = []int{0}
	}
	if !slices.Contains(codes, code) {
		w.t.Errorf("%s: exit %d, want %v\n%s", c, code, codes, out)
	}
	if !regexp.MustCompile(how.prints).MatchString(out) {
		w.t.Errorf("%s: prints nothing like %q:\n%s", c, how.prints, out)
	}
	if how.shown == nil {
		return
	}
	want := c.Output
	if how.answers != nil {
		want = how.answers(want)
	}
	rest := how.shown(out)
	for _, part := range strings.Split(how.shown(want), "...") {
		_, after, ok := strings.Cut(rest, strings.TrimSpace(part))
		if !ok {
			w.t.Errorf("%s: the document shows\n%s\nand it prints\n%s", c, want, out)
			break
		}
		rest = after
	}
}

// shell runs a command in bash, after the document's exports. It returns stdout and stderr in one
// string, and the exit code.
func (w *docWorld) shell(text, stdin string, env ...string) (out string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", w.exports+text)
	var both bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &both, &both
	cmd.Dir, cmd.Env, cmd.SysProcAttr = w.dir, slices.Concat(harness.CleanEnv(), w.environment(), env), zktest.DieWithUs()
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		w.t.Errorf("%s: %s: has not ended in time", w.doc, text)
	} else if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return both.String(), cmd.ProcessState.ExitCode()
}

var typed = regexp.MustCompile(`(?m)^(?:[0-9.]+:\d+> )?((?:GET|MGET|DECODE|WORKER|READY|QUIT)\b.*)\n`)

// telnet sends the requests of a transcript to the node and returns the replies.
func (w *docWorld) telnet(transcript string) string {
	w.t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(w.port))
	if err != nil {
		w.t.Error(err)
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	for _, m := range typed.FindAllStringSubmatch(transcript, -1) {
		fmt.Fprintf(conn, "%s\n", m[1])
	}
	out, err := io.ReadAll(conn)
	if err != nil {
		w.t.Error(err)
	}
	return string(out)
}
