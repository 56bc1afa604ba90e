package kubecheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const token = "a-token-of-the-test"

// podRun runs the pod of a kustomization as a kubelet would. It creates the volumes with
// the owners and modes that a kubelet gives them. It starts containers as their users,
// under a root directory that belongs to another user. Only the address of ZooKeeper, the
// port numbers, the confirming time and the heartbeat differ from the files.
type podRun struct {
	t       *testing.T
	checker checker
	pod     pod
	flaked  container
	root    string
	zk      string
	ids     string // ports
	admin   string
	http    string // of the service beside a sidecar

	log   bytes.Buffer
	cmd   *exec.Cmd
	ended chan error
}

func newPodRun(t *testing.T, bins, dir, kind string) *podRun {
	t.Helper()
	objects, err := load(os.DirFS(shippedDir), dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &podRun{t: t, checker: checker{objects: objects}, root: t.TempDir(), zk: zktest.Chroot(t, zktest.Shared(t)), ids: freePort(t), admin: freePort(t), http: freePort(t)}
	of := func(kind string, objects []object) object {
		i := slices.IndexFunc(objects, func(o object) bool { return o.Kind == kind })
		if i < 0 {
			t.Fatalf("%s has no %s", dir, kind)
		}
		return objects[i]
	}
	set := of(kind, objects)
	p.pod = set.Spec.Template.Spec
	p.flaked = p.pod.all()[slices.IndexFunc(p.pod.all(), func(c container) bool { return c.Image == image })]

	must(t, os.Chmod(p.root, 0o755))
	must(t, os.MkdirAll(filepath.Join(p.root, "usr/local/bin"), 0o755))
	for _, c := range p.pod.all() {
		must(t, os.Link(filepath.Join(bins, c.Image), filepath.Join(p.root, "usr/local/bin", c.Image)))
	}
	for _, m := range p.flaked.VolumeMounts {
		must(t, os.MkdirAll(filepath.Join(p.root, m.MountPath), 0o755))
	}
	for _, v := range p.pod.Volumes {
		path := filepath.Join(p.root, p.mountPath(v.Name))
		switch {
		case v.Secret != nil:
			// A kubelet makes a Secret's files links, so that all files change at once.
			must(t, os.Mkdir(filepath.Join(path, "..1"), 0o755))
			file := filepath.Join(path, "..1/tokens")
			must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
			must(t, os.Chown(file, 0, *p.pod.SecurityContext.FSGroup))
			must(t, os.Chmod(file, fs.FileMode(v.Secret.DefaultMode)))
			must(t, os.Symlink("..1", filepath.Join(path, "..data")))
			must(t, os.Symlink("..data/tokens", filepath.Join(path, "tokens")))
		case v.EmptyDir != nil:
			must(t, os.Chmod(path, 0o777))
			p.own(path)
		}
	}

	jobs, err := load(os.DirFS(shippedDir), "cluster-init")
	if err != nil {
		t.Fatal(err)
	}
	job := of("Job", jobs)
	init := p.command(job.Spec.Template.Spec, job.Spec.Template.Spec.Containers[0], "FLAKED_CONFIRM_TIME=800ms")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("cluster-init: %v\n%s", err, out)
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) string { return strconv.Itoa(zktest.Port(t)) }

func (p *podRun) mountPath(volume string) string {
	for _, m := range p.flaked.VolumeMounts {
		if m.Name == volume {
			return m.MountPath
		}
	}
	p.t.Fatalf("%s is not mounted", volume)
	return ""
}

// own changes the owners and modes of a volume's files as the kubelet does for fsGroup
// (pkg/volume/volume_linux.go).
func (p *podRun) own(volume string) {
	group := p.pod.SecurityContext.FSGroup
	if group == nil {
		return
	}
	must(p.t, filepath.WalkDir(volume, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Stat(path, &st); err != nil {
			return err
		}
		if err := os.Lchown(path, -1, *group); err != nil {
			return err
		}
		mode := st.Mode&0o7777 | 0o660
		if d.IsDir() {
			mode |= 0o2110
		}
		return syscall.Chmod(path, mode)
	}))
}

// command returns the command that runs container one of the pod in. env is added to the
// container's environment.
func (p *podRun) command(in pod, one container, env ...string) *exec.Cmd {
	all := p.checker.environment(one)
	all["FLAKED_ZK"] = p.zk
	list := env
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+strings.ReplaceAll(all[name], podIP, "127.0.0.1"))
	}
	ports := strings.NewReplacer(":7609", ":"+p.ids, ":7610", ":"+p.admin, ":8080", ":"+p.http)
	args := []string{"/usr/local/bin/" + one.Image}
	for _, arg := range one.Args {
		args = append(args, ports.Replace(arg))
	}
	id := func(own, pods *int) uint32 {
		if own != nil {
			return uint32(*own)
		}
		return uint32(*pods)
	}
	cred := &syscall.Credential{
		Uid: id(one.SecurityContext.RunAsUser, in.SecurityContext.RunAsUser),
		Gid: id(one.SecurityContext.RunAsGroup, in.SecurityContext.RunAsGroup),
	}
	for _, g := range in.SecurityContext.SupplementalGroups {
		cred.Groups = append(cred.Groups, uint32(g))
	}
	if g := in.SecurityContext.FSGroup; g != nil {
		cred.Groups = append(cred.Groups, uint32(*g))
	}
	return &exec.Cmd{
		Path: args[0], Args: args, Env: list, Dir: "/",
		SysProcAttr: &syscall.SysProcAttr{Chroot: p.root, Credential: cred, Pdeathsig: syscall.SIGKILL},
	}
}

// exec runs a command of flaked in container one, as kubectl exec would: as its user and
// with its environment. It returns stdout and stderr together.
func (p *podRun) exec(one container, args ...string) (string, error) {
	one.Image, one.Args = image, args
	out, err := p.command(p.pod, one).CombinedOutput()
	return string(out), err
}

func (p *podRun) start() {
	p.t.Helper()
	p.log.Reset()
	p.cmd = p.command(p.pod, p.flaked, "FLAKED_HEARTBEAT=200ms")
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	must(p.t, p.cmd.Start())
	p.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(p.cmd, p.ended)
	p.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
}

// probe sends the request of a probe and returns the HTTP status, or 0 without an answer.
func (p *podRun) probe(probe *probe) int {
	resp, err := http.Get("http://127.0.0.1:" + p.admin + probe.HTTPGet.Path)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// await waits up to 30 s until a probe gets status 200.
func (p *podRun) await(probe *probe) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); p.probe(probe) != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-p.ended:
			p.t.Fatalf("the node ended: %v\n%s", err, &p.log)
		default:
		}
		if time.Now().After(deadline) {
			_ = p.cmd.Process.Kill()
			<-p.ended
			p.t.Fatalf("%s does not become well\n%s", probe.HTTPGet.Path, &p.log)
		}
	}
}

func (p *podRun) stop() {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Fatalf("after SIGTERM: %v\n%s", err, &p.log)
		}
	case <-time.After(endTime * time.Second):
		p.t.Fatalf("it takes longer than %d s to end", endTime)
	}
}

// workers returns the number, state and term of each worker that `flaked workers list`
// prints: "0 live 2, 1 stopped 1".
func (p *podRun) workers() string {
	p.t.Helper()
	out, err := p.exec(p.flaked, "workers", "list", "-o", "json")
	must(p.t, err)
	var list struct {
		Workers []struct {
			Worker int    `json:"worker"`
			State  string `json:"state"`
			Term   int    `json:"term"`
		} `json:"workers"`
	}
	must(p.t, json.Unmarshal([]byte(out), &list))
	var words []string
	for _, w := range list.Workers {
		words = append(words, fmt.Sprintf("%d %s %d", w.Worker, w.State, w.Term))
	}
	return strings.Join(words, ", ")
}

func (p *podRun) get(one container) error {
	out, err := p.exec(one, "get", "2", "--addr", p.address())
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if strings.Count(out, "\n") != 2 {
		return fmt.Errorf("two IDs are %q", out)
	}
	return nil
}

// order starts the service beside a sidecar and sends it an order, which needs an ID.
func (p *podRun) order(app container) {
	p.t.Helper()
	var log bytes.Buffer
	cmd := p.command(p.pod, app)
	cmd.Stdout, cmd.Stderr = &log, &log
	must(p.t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if p.t.Failed() {
			p.t.Logf("the service:\n%s", &log)
		}
	}()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.PostForm("http://127.0.0.1:"+p.http+"/orders", url.Values{"item": {"book"}})
		if err == nil {
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusCreated {
				p.t.Errorf("an order: %s", resp.Status)
			}
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("the service does not answer: %v", err)
			return
		}
	}
}

func (p *podRun) address() string {
	if l := p.checker.flag(p.flaked, "listen"); strings.HasPrefix(l, "unix:") {
		return l
	}
	return "127.0.0.1:" + p.ids
}

func TestPodsRun(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may run processes as others, in a root of their own")
	}
	zktest.Shared(t) // or skip before anything is built
	bins := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", bins, "github.com/flaked/flaked/cmd/flaked", "github.com/flaked/flaked/examples/webapp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	t.Run("sidecar", func(t *testing.T) {
		t.Parallel()
		p := newPodRun(t, bins, "sidecar", "Deployment")
		p.start()
		p.await(p.flaked.StartupProbe)
		if got := p.probe(p.flaked.LivenessProbe); got != http.StatusOK {
			t.Errorf("livenessProbe: %d", got)
		}
		app := p.pod.Containers[0]
		if err := p.get(app); err != nil {
			t.Errorf("the service's user gets no IDs: %v", err)
		}
		p.order(app)
		groups := p.pod.SecurityContext.SupplementalGroups
		p.pod.SecurityContext.SupplementalGroups = nil
		if err := p.get(app); err == nil {
			t.Error("the socket is open to all")
		}
		p.pod.SecurityContext.SupplementalGroups = groups
		if got := p.probe(&probe{HTTPGet: httpGet{Path: "/v1/ids"}}); got != http.StatusForbidden {
			t.Errorf("IDs for all who reach the admin port: %d", got)
		}

		// A node whose container was killed keeps its worker, because the pod stays.
		must(t, p.cmd.Process.Kill())
		<-p.ended
		p.start()
		p.await(p.flaked.StartupProbe)
		if got, want := p.workers(), "0 live 2"; got != want {
			t.Errorf("after a crash: %s, want %s", got, want)
		}
		p.stop()
		if got := p.workers(); strings.Contains(got, "live") || strings.Contains(got, "stopped") {
			t.Errorf("it is not given back: %s", got)
		}
	})
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		p := newPodRun(t, bins, "shared", "Deployment")
		p.start()
		p.await(p.flaked.LivenessProbe)
		p.await(p.flaked.ReadinessProbe)
		if err := p.get(p.flaked); err != nil {
			t.Error(err)
		}
		out, err := p.exec(p.flaked, "status", "-o", "json")
		for _, want := range []string{`"address": "127.0.0.1:` + p.ids, `"admin": "127.0.0.1:` + p.admin, `"asked": "answered"`} {
			if err != nil || !strings.Contains(strings.ReplaceAll(out, `":"`, `": "`), want) {
				t.Errorf("status: no %s, %v\n%s", want, err, out)
			}
		}
		if out, err := p.exec(container{SecurityContext: p.flaked.SecurityContext}, "get", "--addr", p.address()); err == nil || !strings.Contains(out, "NOAUTH") {
			t.Errorf("without a token: %v\n%s", err, out)
		}
		p.stop()
		if got := p.workers(); strings.Contains(got, "live") || strings.Contains(got, "stopped") {
			t.Errorf("it is not given back: %s", got)
		}
	})
	t.Run("without ZooKeeper", func(t *testing.T) {
		t.Parallel()
		p := newPodRun(t, bins, "shared", "Deployment")
		p.zk = "127.0.0.1:1" // where nobody listens
		p.start()
		p.await(p.flaked.LivenessProbe)
		if got := p.probe(p.flaked.ReadinessProbe); got != http.StatusServiceUnavailable {
			t.Errorf("readinessProbe: %d", got)
		}
		p.stop()
	})
	t.Run("stateful", func(t *testing.T) {
		t.Parallel()
		p := newPodRun(t, bins, "stateful", "StatefulSet")
		// The root of a new filesystem belongs to root. The kubelet changes its owner once.
		// Afterwards OnRootMismatch finds the right owner and changes nothing.
		volume := filepath.Join(p.root, p.mountPath("state"))
		p.own(volume)
		p.start()
		p.await(p.flaked.ReadinessProbe)
		if err := p.get(p.flaked); err != nil {
			t.Error(err)
		}
		p.stop()
		if got, want := p.workers(), "0 stopped 1"; got != want {
			t.Errorf("between two pods: %s, want %s", got, want)
		}
		p.start()
		p.await(p.flaked.ReadinessProbe)
		if got, want := p.workers(), "0 live 2"; got != want {
			t.Errorf("in the next pod: %s, want %s", got, want)
		}
		p.stop()

		// fsGroupChangePolicy Always would call own at every start: flaked then refuses the
		// state directory.
		p.own(volume)
		p.start()
		if err := <-p.ended; err == nil || !strings.Contains(p.log.String(), "open to other users") {
			t.Errorf("a state directory that others may write to: %v\n%s", err, &p.log)
		}
	})
}
