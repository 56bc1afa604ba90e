package deploy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// hardened has the flags of podman that take away what a node does not need.
var hardened = []string{"--read-only", "--read-only-tmpfs=false", "--cap-drop", "ALL", "--security-opt",
	"no-new-privileges"}

func TestImageContainsOneProgramAndThreeDirectories(t *testing.T) {
	needsImage(t)
	name := unique(t, "contents")
	podman(t, "create", "--name", name, image)
	removed(t, name)
	archive := filepath.Join(t.TempDir(), "image.tar")
	podman(t, "export", "--output", archive, name)
	// Mode, owner and name. The engine adds empty files for its mounts.
	var got []string
	for line := range strings.Lines(do(t, "tar", "--numeric-owner", "-tvf", archive)) {
		f := strings.Fields(line)
		path := strings.TrimSuffix(f[5], "/")
		if !slices.Contains([]string{"dev", "proc", "sys", "run", "etc", "usr", "usr/local", "usr/local/bin", "var",
			"var/lib", "tmp", "run/.containerenv"}, path) && !strings.HasPrefix(path, "etc/") &&
			!strings.HasPrefix(path, "dev/") {
			got = append(got, f[0]+" "+f[1]+" "+path)
		}
	}
	slices.Sort(got)
	want := []string{"-rwxr-xr-x 65532/65532 usr/local/bin/flaked", "drwx------ 65532/65532 var/lib/flaked",
		"drwxr-xr-x 65532/65532 run/flaked"}
	if !slices.Equal(got, want) {
		t.Errorf("the image has %q, want %q", got, want)
	}
	if out := podman(t, "run", "--rm", "--network", "none", image, "--version"); !strings.HasPrefix(out,
		"flaked 1.2.3-test\n") {
		t.Errorf("version: %q", out)
	}
	config := strings.TrimSpace(podman(t, "image", "inspect", "--format",
		"{{.User}} {{.Config.StopSignal}} {{.Config.Entrypoint}} {{.Config.Cmd}}", image))
	if config != "65532:65532 SIGTERM [/usr/local/bin/flaked] [serve]" {
		t.Errorf("configuration: %q", config)
	}
}

// A node of the image, in a cluster on a ZooKeeper of the host.
type container struct {
	t               testing.TB
	image           string
	name, volume    string
	zk, listen, own string
}

func newContainer(t testing.TB, zk, kind string) *container {
	return &container{
		t: t, image: image, name: unique(t, kind), volume: newVolume(t, kind), zk: zk,
		listen: freeAddress(t), own: freeAddress(t),
	}
}

// args returns the command line of the container, with flags of podman.
func (c *container) args(flags ...string) []string {
	args := append([]string{"podman", "run", "--name", c.name, "--network", "host", "-e", "FLAKED_ADDR=" + c.listen,
		"-v", c.volume + ":/var/lib/flaked"}, hardened...)
	return append(append(args, flags...), c.image, "serve", "--zk", c.zk, "--cluster", "image", "--bootstrap",
		"--heartbeat", "200ms", "--confirm-time", "800ms", "--listen", c.listen, "--admin", c.own, "--name", c.name)
}

// run starts the container, and waits until the node gives out IDs.
func (c *container) run(flags ...string) {
	c.t.Helper()
	removed(c.t, c.name)
	do(c.t, c.args(append([]string{"--detach"}, flags...)...)...)
	ready(c.t, c.listen)
}

// exitCode returns the exit code of the ended container.
func (c *container) exitCode() string {
	c.t.Helper()
	return strings.TrimSpace(podman(c.t, "inspect", "--format", "{{.State.ExitCode}}", c.name))
}

func TestImageRunsHardened(t *testing.T) {
	needsImage(t)
	c := newContainer(t, zktest.Chroot(t, zktest.Shared(t)), "node")
	c.run()
	worker := workerOf(t, c.listen)
	ids := collect(t, c.listen)
	ids.more(t, c.listen)
	podman(t, "healthcheck", "run", c.name)
	if status := podman(t, "exec", "-e", "FLAKED_ZK="+c.zk, "-e", "FLAKED_CLUSTER=image", c.name,
		"/usr/local/bin/flaked", "status"); !strings.Contains(status, c.name) {
		t.Errorf("status does not name the node:\n%s", status)
	}

	started := time.Now()
	podman(t, "stop", "--time", "20", c.name)
	if took := time.Since(started); c.exitCode() != "0" || took > 15*time.Second {
		t.Errorf("SIGTERM: exit code %s after %v", c.exitCode(), took)
	}
	podman(t, "start", c.name)
	ready(t, c.listen)
	hasWorker(t, c.listen, worker, "a stop, with its volume")
	ids.more(t, c.listen)

	podman(t, "kill", "--signal", "KILL", c.name)
	podman(t, "wait", c.name)
	podman(t, "start", c.name)
	ready(t, c.listen)
	hasWorker(t, c.listen, worker, "kill -9, with its volume")
	ids.more(t, c.listen)

	podman(t, "rm", "--force", "--time", "1", c.name)
	podman(t, "volume", "rm", c.volume)
	podman(t, "volume", "create", c.volume)
	c.run()
	if now := workerOf(t, c.listen); now == worker {
		t.Errorf("worker %s again, with an empty volume", now)
	}
	ids.more(t, c.listen)
	ids.unique(t)
}
