package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// coldBuild limits the time in which examples/webapp/run.sh builds its programs. With an empty
// Go cache and other builds at the same time, the build takes minutes. The limit is below the
// 10 minutes of `make test`, so that this test itself reports a build that is too slow. The
// start of the service has the limit patience, counted from the end of the build.
const coldBuild = 8 * time.Minute

// TestWebappExample runs the script of examples/webapp. The script starts a node and a web
// service, which uses the node through a Unix socket.
func TestWebappExample(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "webapp") // short, because socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	env := []string{"FLAKED_ZK=" + zktest.Chroot(t, zktest.Shared(t)), "WEBAPP_DIR=" + dir}
	p := launchEnv(t, env, "run.sh", nil, "../../../examples/webapp/run.sh", "127.0.0.1:0")
	end := func() { // ends the script and both of its processes
		if p.running() {
			p.signal(syscall.SIGTERM)
			if code := p.exit(); code != 0 {
				t.Errorf("run.sh: exit %d", code)
			}
		}
	}
	t.Cleanup(end)

	nodeLog := filepath.Join(dir, "flaked.log") // created after the build
	built := within(coldBuild, func() bool {
		_, err := os.Stat(nodeLog)
		return err == nil || !p.running()
	})
	if !built || !p.running() {
		t.Fatalf("run.sh has not built within %v, or has ended", coldBuild)
	}
	var base string
	serving := regexp.MustCompile(`"msg":"serving","addr":"([^"]+)"`)
	eventually(t, "the service listens", func() bool {
		if !p.running() {
			t.Fatal("run.sh has ended")
		}
		if m := serving.FindStringSubmatch(p.log()); m != nil {
			base = "http://" + m[1]
		}
		return base != ""
	})
	web := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	t.Cleanup(web.CloseIdleConnections)
	type order struct {
		ID     worker.ID
		Number int64
		Item   string
	}
	read := func(resp *http.Response, err error) (int, string, order) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var o order
		if resp.StatusCode < 300 {
			if !regexp.MustCompile(`"id":"\d+"`).Match(body) {
				t.Errorf("a browser would round the ID: %s", body)
			}
			if err := json.Unmarshal(body, &o); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
		}
		return resp.StatusCode, resp.Header.Get("X-Request-Id"), o
	}

	// Before the node is ready, the service answers requests but takes no orders.
	take := func() (int, string, order) {
		t.Helper()
		return read(web.PostForm(base+"/orders", url.Values{"item": {"book"}}))
	}
	eventually(t, "an order with a number is taken", func() bool {
		status, request, o := take()
		if request == "" || status != http.StatusCreated && status != http.StatusServiceUnavailable {
			t.Fatalf("status %d, request %q", status, request)
		}
		return status == http.StatusCreated && o.Number > 0
	})
	status, request, made := take()
	if status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	id, err := worker.ParseID(request)
	if err != nil || id >= made.ID || made.Number < 1 || made.Item != "book" {
		t.Errorf("request %s, order %+v, %v", request, made, err)
	}
	line := `"msg":"order taken","order":"` + made.ID.String() + `","request_id":"` + request + `"`
	eventually(t, line, func() bool { return strings.Contains(p.log(), line) })

	end()
	if _, err := web.Get(base + "/orders"); err == nil {
		t.Error("the service is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "flaked.sock")); !os.IsNotExist(err) {
		t.Errorf("the node is still there, or left its socket: %v", err)
	}
	if t.Failed() {
		node, _ := os.ReadFile(nodeLog)
		t.Logf("--- the node's log\n%s", lastLines(string(node), 40))
	}
}
