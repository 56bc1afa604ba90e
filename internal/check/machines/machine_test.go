//go:build linux

// Package machines runs flaked in virtual machines, and does to them what a process cannot do to itself: it cuts
// their power, lets them stand still, sets them back to a snapshot, and clones them. QEMU emulates the processor,
// so that a machine boots without KVM, in about ten seconds.
//
// A kill of QEMU is the power cut: what the machine had not written to its disk is lost. A client outside keeps
// all IDs and values.
//
// `make machines` installs what the tests need and sets FLAKED_TEST_MACHINES. Without it they are skipped, and say so.
package machines

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestMain(m *testing.M) {
	code := zktest.Run(m)
	harness.RemoveBuilds()
	os.Exit(code)
}

// kernelRoot returns the directory of the unpacked kernel. It skips the test unless `make machines` runs it.
func kernelRoot(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("FLAKED_TEST_MACHINES")
	if dir == "" {
		t.Skip("needs QEMU and a kernel: make machines installs them")
	}
	return dir
}

// modules are the kernel modules for the machine's disk and network, in the order in which the kernel takes them.
var modules = []string{
	"virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk",
	"failover", "net_failover", "virtio_net", "libcrc32c", "xfs",
}

// applets are the programs of busybox that testdata/init uses.
var applets = []string{"sh", "mount", "insmod", "ip", "cat", "echo", "date", "poweroff", "dd", "rm", "tr", "sleep"}

// image has the paths of the kernel and the initrd that machines boot from, "" before the first ones were made. The
// files go with the builds.
var image struct {
	sync.Mutex
	kernel, initrd string
}

// makeImage makes the file system in memory that a machine boots from: busybox, flaked, chronyd and testdata/init.
func makeImage(t testing.TB) (kernel, initrd string) {
	t.Helper()
	image.Lock()
	defer image.Unlock()
	if image.initrd != "" {
		return image.kernel, image.initrd
	}
	root, from := t.TempDir(), kernelRoot(t)
	for _, dir := range []string{"bin", "dev", "proc", "sys", "tmp", "mnt", "lib", "lib64", "etc", "var/lib/chrony"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0::/:/bin/sh\n"), 0o644))
	busybox, chronyd := program(t, "busybox"), program(t, "chronyd")
	install(t, busybox, filepath.Join(root, "bin/busybox"))
	for _, name := range applets {
		must(t, os.Symlink("busybox", filepath.Join(root, "bin", name)))
	}
	install(t, chronyd, filepath.Join(root, "bin/chronyd"))
	for _, word := range strings.Fields(run(t, "ldd", chronyd)) {
		if strings.HasPrefix(word, "/") {
			install(t, word, filepath.Join(root, word))
		}
	}
	install(t, harness.Shipped.Binary(t), filepath.Join(root, "bin/flaked"))
	install(t, "testdata/init", filepath.Join(root, "init"))
	var names []string
	for _, name := range modules {
		// A kernel that has it built in has no file.
		if found := strings.TrimSpace(run(t, "find", filepath.Join(from, "lib/modules"), "-name", name+".ko")); found != "" {
			install(t, found, filepath.Join(root, "lib", name+".ko"))
			names = append(names, name)
		}
	}
	must(t, os.WriteFile(filepath.Join(root, "lib/modules"), []byte(strings.Join(names, "\n")+"\n"), 0o644))

	kernels, err := filepath.Glob(filepath.Join(from, "boot/vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		t.Fatalf("kernels in %s/boot: %q, %v", from, kernels, err)
	}
	builds, err := harness.BuildDir()
	must(t, err)
	initrd = filepath.Join(builds, "initrd")
	pack(t, root, initrd)
	image.kernel, image.initrd = kernels[0], initrd
	return image.kernel, image.initrd
}

// pack writes the files under root into an archive of the format that kernels read. It is not compressed: emulated
// processors take seconds for that.
func pack(t testing.TB, root, archive string) {
	t.Helper()
	run(t, "sh", "-c", "cd '"+root+"' && find . | cpio --quiet -o -H newc >'"+archive+"'")
}

// machine is a virtual machine with one disk, on which a node runs.
type machine struct {
	t              testing.TB
	node           *harness.Node // in the machine. Its process is not the host's
	kernel, initrd string
	said           string // the file of the console
	fs             string // of the disk: ext4 or xfs
	disk           string // a file in the format qcow2
	zk             string // as the machine sees ZooKeeper
	flags          []string
	monitor        int // port
	console        *os.File
	keyboard       io.WriteCloser
	cmd            *exec.Cmd
}

// newMachine returns a machine that has never run, with an empty disk of size bytes. flags are of its node.
func newMachine(site *harness.Site, fs, size string, flags ...string) *machine {
	t := site.T
	t.Helper()
	kernel, initrd := makeImage(t)
	dir := t.TempDir()
	m := &machine{
		t: t, node: site.OnPorts(1)[0], kernel: kernel, initrd: initrd, said: filepath.Join(dir, "console"), fs: fs,
		disk: filepath.Join(dir, "disk"), zk: strings.ReplaceAll(site.Connect, "127.0.0.1", "10.0.2.2"), flags: flags, monitor: zktest.Port(t),
	}
	raw := filepath.Join(dir, "raw")
	run(t, "truncate", "-s", size, raw)
	run(t, program(t, "mkfs."+fs), "-q", raw)
	run(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, m.disk)
	t.Cleanup(m.end)
	return m
}

// end cuts the machine's power at the end of a test, and shows what it said if the test has failed.
func (m *machine) end() {
	m.cut()
	if m.t.Failed() {
		m.t.Logf("the console's last lines:\n%s", harness.LastLines(m.log(), 30))
	}
}

// clone returns a machine that has a copy of m's disk, with its snapshots.
func (m *machine) clone() *machine {
	m.t.Helper()
	c := *m
	dir := m.t.TempDir()
	c.node, c.said, c.disk, c.monitor, c.cmd = m.node.Site.OnPorts(1)[0], filepath.Join(dir, "console"),
		filepath.Join(dir, "disk"), zktest.Port(m.t), nil
	run(m.t, "cp", "--sparse=always", m.disk, c.disk)
	m.t.Cleanup(c.end)
	return &c
}

// boot starts the machine. If snapshot is not empty, the machine goes on from there instead.
func (m *machine) boot(snapshot string) {
	m.t.Helper()
	args := []string{
		"-machine", "q35,accel=tcg", "-cpu", "max", "-m", "384", "-smp", "1", "-display", "none", "-no-reboot",
		"-serial", "stdio", "-monitor", "none", "-qmp", fmt.Sprintf("tcp:127.0.0.1:%d,server,nowait", m.monitor),
		"-kernel", m.kernel, "-initrd", m.initrd,
		"-append", fmt.Sprintf("console=ttyS0 quiet panic=1 no_timer_check fs=%s zk=%s id=%032x flags=%s", m.fs, m.zk, 7, strings.Join(m.flags, "%")),
		"-drive", "file=" + m.disk + ",format=qcow2,if=virtio,cache=writeback",
		"-netdev", "user,id=n0,hostfwd=tcp:" + m.node.Listen + "-:7609", "-device", "virtio-net-pci,netdev=n0",
	}
	if snapshot != "" {
		args = append(args, "-loadvm", snapshot)
	}
	var err error
	m.console, err = os.OpenFile(m.said, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(m.t, err)
	m.cmd = exec.Command("qemu-system-x86_64", args...)
	m.cmd.Stdout, m.cmd.Stderr, m.cmd.SysProcAttr = m.console, m.console, zktest.DieWithUs()
	m.keyboard, err = m.cmd.StdinPipe()
	must(m.t, err)
	must(m.t, m.cmd.Start())
}

// cut ends the machine as a power cut does.
func (m *machine) cut() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	_ = m.console.Close()
	m.cmd = nil
}

// log returns all that the machine has written to its console, over all its boots.
func (m *machine) log() string {
	data, _ := os.ReadFile(m.said)
	return string(data)
}

// does types a command of testdata/init, and waits for its answer if there is one.
func (m *machine) does(command, answer string) {
	m.t.Helper()
	before := len(m.log())
	_, err := io.WriteString(m.keyboard, command+"\n")
	must(m.t, err)
	if answer != "" && !harness.Within(2*time.Minute, func() bool { return strings.Contains(m.log()[before:], answer) }) {
		m.t.Fatalf("no %q after %q", answer, command)
	}
}

// hypervisor gives QEMU a command of its monitor.
func (m *machine) hypervisor(command string) {
	m.t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", m.monitor))
	must(m.t, err)
	defer conn.Close()
	must(m.t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	in := json.NewDecoder(conn)
	type reply struct {
		Return json.RawMessage `json:"return"`
		Error  json.RawMessage `json:"error"`
	}
	read := func() reply {
		for {
			var r reply
			must(m.t, in.Decode(&r))
			if r.Return != nil || r.Error != nil {
				return r
			}
		}
	}
	var greeting map[string]any
	must(m.t, in.Decode(&greeting))
	for _, request := range []string{
		`{"execute":"qmp_capabilities"}`,
		fmt.Sprintf(`{"execute":"human-monitor-command","arguments":{"command-line":%q}}`, command),
	} {
		_, err = io.WriteString(conn, request+"\n")
		must(m.t, err)
		if r := read(); r.Error != nil || len(r.Return) > 4 {
			m.t.Fatalf("%s: %s%s", command, r.Error, r.Return)
		}
	}
}

// startLimit bounds the time in which a machine boots, and its node serves. On a busy host that has taken 200 s.
const startLimit = 4 * time.Minute

// ready waits until the node in the machine serves, and returns how long that took.
func (m *machine) ready() time.Duration {
	m.t.Helper()
	began := time.Now()
	if !harness.Within(startLimit, m.node.IsReady) {
		reply, err := m.node.Ask("READY")
		m.t.Fatalf("not ready: %q, %v", reply, err)
	}
	return time.Since(began)
}

// served boots the machine for the first time, and waits until its node serves, also the sequence that it returns.
func (m *machine) served() harness.Sequence {
	m.t.Helper()
	m.boot("")
	m.ready()
	return m.node.Site.Sequence("order")
}

// load asks a node for IDs and for values until the returned function is called.
func load(n *harness.Node, order harness.Sequence) (end func()) {
	ids, values := n.NewLoad(), order.Under(n, 1)
	for range 2 {
		ids.Add(2*time.Millisecond, harness.CallTimeout, func(c *harness.Client, _ int) (int, error) { return c.Counted("GET 100\n", 100) })
	}
	n.Site.T.Cleanup(ids.End)
	ids.Progress()
	return func() { ids.End(); values.End() }
}

// behind returns how far the machine's clock is behind the host's, if its node answers: least to most, by when the
// machine may have read its clock.
func (m *machine) behind() (least, most time.Duration, ok bool) {
	var status struct {
		Now int64 `json:"now_ms"`
	}
	asked := time.Now()
	reply, err := m.node.Ask("STATUS")
	ok = err == nil && json.Unmarshal([]byte(reply), &status) == nil
	shown := time.UnixMilli(status.Now)
	return asked.Sub(shown), time.Since(shown), ok
}

// program returns the path of a program, which may be one of root's.
func program(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
			return filepath.Join(dir, name)
		}
	}
	t.Fatalf("there is no %s: make machines installs it", name)
	return ""
}

func run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// install copies a program.
func install(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(t, os.WriteFile(to, data, 0o755))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
