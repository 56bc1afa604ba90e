// Package deploy runs what flaked is deployed with: the image of the Dockerfile, docker-compose.yml, the
// manifests for Kubernetes, and the files of a release, in FLAKED_TEST_DIST or made for the test.
//
// The tests need podman, systemd in a container and root. `make containers` installs them and
// sets FLAKED_TEST_CONTAINERS. Without it the tests are skipped, and say so. The published
// base images cannot be fetched where these tests run. Images of the same names, which
// scripts/get-containers.sh makes of Debian, stand in for them.
package deploy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// repository is the root of the checkout.
var repository = func() string {
	dir, err := filepath.Abs("../../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// needsEngine skips the test unless `make containers` runs it.
func needsEngine(t testing.TB) {
	t.Helper()
	if os.Getenv("FLAKED_TEST_CONTAINERS") == "" {
		t.Skip("needs a container engine: make containers installs one")
	}
	if os.Geteuid() != 0 {
		t.Fatal("containers with systemd need root")
	}
}

// try runs a program and returns what it wrote to stdout. The error has both streams. dir is
// relative to the root of the checkout.
func try(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = filepath.Join(repository, dir)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), err
}

// do is try for what must succeed.
func do(t testing.TB, args ...string) string {
	t.Helper()
	out, err := try(t.Context(), ".", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func podman(t testing.TB, args ...string) string {
	t.Helper()
	return do(t, append([]string{"podman"}, args...)...)
}

// image is the image of the Dockerfile, under the name that docker-compose.yml gives it.
const image = "localhost/flaked:dev"

var built = sync.OnceValue(func() error {
	args := []string{"buildah", "bud", "--format", "docker", "--network", "host", "--build-arg", "VERSION=1.2.3-test",
		"-t", image}
	// The module and build caches of this machine save minutes. They are not in the image.
	for variable, inside := range map[string]string{"GOMODCACHE": "/go/pkg/mod", "GOCACHE": "/root/.cache/go-build"} {
		out, err := try(context.Background(), ".", "go", "env", variable)
		if err != nil {
			return err
		}
		args = append(args, "-v", strings.TrimSpace(out)+":"+inside)
	}
	_, err := try(context.Background(), ".", append(args, ".")...)
	return err
})

// needsImage builds the image from the Dockerfile as it stands.
func needsImage(t testing.TB) {
	t.Helper()
	needsEngine(t)
	if err := built(); err != nil {
		t.Fatal(err)
	}
}

// needsNetwork skips the test where the engine cannot connect containers to a network. `network
// create` only writes a file, so the engine has to run a container of the image in it.
func needsNetwork(t testing.TB) {
	t.Helper()
	name := unique(t, "try")
	podman(t, "network", "create", name)
	_, err := try(t.Context(), ".", "podman", "run", "--rm", "--network", name, image, "--version")
	podman(t, "network", "rm", "--force", name)
	if err != nil {
		t.Skipf("NOT RUN: this machine cannot make networks for containers: %v", err)
	}
}

// unique returns a name for a container, volume or network of this test.
func unique(t testing.TB, kind string) string {
	t.Helper()
	return fmt.Sprintf("flaked-test-%d-%s", os.Getpid(), kind)
}

// removed removes a container at the end of the test. If the test has failed, it prints the
// container's log first.
func removed(t testing.TB, name string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("podman", "logs", "--tail", "40", name).CombinedOutput()
			t.Logf("log of %s:\n%s", name, out)
		}
		_, _ = try(context.Background(), ".", "podman", "rm", "--force", "--volumes", "--time", "1", name)
	})
}

// newVolume returns the name of a new volume.
func newVolume(t testing.TB, kind string) string {
	t.Helper()
	name := unique(t, kind)
	podman(t, "volume", "create", name)
	t.Cleanup(func() { _, _ = try(context.Background(), ".", "podman", "volume", "rm", "--force", name) })
	return name
}

// until waits until ok returns nil.
func until(t testing.TB, limit time.Duration, what string, ok func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); pause(t.Context(), 100*time.Millisecond) {
		if err = ok(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %v: %v", what, limit, err)
}

// ask sends lines to a node, and returns the line that answers the last of them.
func ask(address string, lines ...string) (answer string, err error) {
	conn, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	answers := bufio.NewReader(conn)
	for _, line := range lines {
		if _, err := fmt.Fprintf(conn, "%s\n", line); err != nil {
			return "", err
		}
		if answer, err = answers.ReadString('\n'); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(answer), nil
}

// ready waits until the node at address gives out IDs.
func ready(t testing.TB, address string) {
	t.Helper()
	until(t, 90*time.Second, "the node at "+address, func() error { return isReady(address) })
}

func isReady(address string) error {
	answer, err := ask(address, "GET")
	if err != nil {
		return err
	}
	_, err = strconv.ParseInt(answer, 10, 64)
	return err
}

// workerOf returns the worker of the node at address. Lines before the question may authenticate.
func workerOf(t testing.TB, address string, before ...string) string {
	t.Helper()
	answer, err := ask(address, append(before, "WORKER")...)
	if err != nil {
		t.Fatal(err)
	}
	worker, _, _ := strings.Cut(answer, " ")
	worker, ok := strings.CutPrefix(worker, "worker=")
	if !ok || worker == "none" {
		t.Fatalf("WORKER at %s: %q", address, answer)
	}
	return worker
}

// hasWorker reports a node that has another worker than it had before the event named by after.
func hasWorker(t testing.TB, address, worker, after string, before ...string) {
	t.Helper()
	if now := workerOf(t, address, before...); now != worker {
		t.Errorf("%s has worker %s after %s, had %s", address, now, after, worker)
	}
}

// freeAddress returns an address of this machine on which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", zktest.Port(t))
}

// A collector draws IDs from nodes without pause, and keeps all.
type collector struct {
	mu   sync.Mutex
	ids  []int64
	per  map[string]int // IDs by address
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// collect starts a client of each node. A client whose node does not answer tries again.
func collect(t testing.TB, addresses ...string) *collector {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &collector{per: map[string]int{}, stop: cancel}
	t.Cleanup(func() { cancel(); c.wg.Wait() })
	for _, address := range addresses {
		c.wg.Go(func() {
			for ctx.Err() == nil {
				c.draw(ctx, address)
				pause(ctx, 50*time.Millisecond)
			}
		})
	}
	return c
}

// pause returns after d, or when the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// draw asks for batches of 50 IDs until the connection fails or the context ends.
func (c *collector) draw(ctx context.Context, address string) {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for ctx.Err() == nil {
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		if _, err := fmt.Fprint(conn, "GET 50\n"); err != nil {
			return
		}
		for range 50 {
			line, err := answers.ReadString('\n')
			if err != nil {
				return
			}
			id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				return // a refusal
			}
			c.add(address, id)
		}
		pause(ctx, 2*time.Millisecond)
	}
}

func (c *collector) add(address string, id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, id)
	c.per[address]++
}

func (c *collector) count(address string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.per[address]
}

// more waits until the node at address has given out IDs after this call.
func (c *collector) more(t testing.TB, address string) {
	t.Helper()
	before := c.count(address)
	until(t, 90*time.Second, "more IDs of "+address, func() error {
		if c.count(address) <= before {
			return fmt.Errorf("still %d", before)
		}
		return nil
	})
}

// unique ends the clients, and reports IDs that were issued twice.
func (c *collector) unique(t testing.TB) {
	t.Helper()
	c.stop()
	c.wg.Wait()
	slices.Sort(c.ids)
	all := len(c.ids)
	c.ids = slices.Compact(c.ids)
	if len(c.ids) != all {
		t.Errorf("%d of %d IDs were issued before", all-len(c.ids), all)
	}
	t.Logf("%d IDs, %d different", all, len(c.ids))
}
