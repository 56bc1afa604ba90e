package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

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
// 10 minutes of `make test`, so that this test itself reports a build that is too slow.
const coldBuild = 8 * time.Minute

type purchase struct {
	ID     worker.ID
	Number int64
	Item   string
}

// takeOrder asks the web service for an order.
func takeOrder(t *testing.T, base string) (status int, request string, o purchase) {
	t.Helper()
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: harness.Patience}
	resp, err := web.PostForm(base+"/orders", url.Values{"item": {"book"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == http.StatusCreated {
		err = json.Unmarshal(body, &o)
		if !regexp.MustCompile(`"id":"\d+"`).Match(body) {
			t.Errorf("a browser would round the ID: %s", body)
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return resp.StatusCode, resp.Header.Get("X-Request-Id"), o
}

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
	p := harness.Launch(t, env, "run.sh", "../../../examples/webapp/run.sh", "127.0.0.1:0")
	t.Cleanup(func() { p.Signal(syscall.SIGTERM); p.Exit() }) // ends the script and both of its processes
	var serving []string
	listens := regexp.MustCompile(`"msg":"serving","addr":"([^"]+)"`)
	harness.Within(coldBuild, func() bool {
		serving = listens.FindStringSubmatch(p.Log())
		return serving != nil || !p.Running()
	})
	if serving == nil {
		t.Fatalf("the service does not listen within %v, or run.sh has ended", coldBuild)
	}
	base := "http://" + serving[1]
	// Before the node is ready, the service answers requests but takes no orders.
	harness.Eventually(t, "an order with a number is taken", func() bool {
		status, request, o := takeOrder(t, base)
		if request == "" || status != http.StatusCreated && status != http.StatusServiceUnavailable {
			t.Fatalf("status %d, request %q", status, request)
		}
		return status == http.StatusCreated && o.Number > 0
	})
	_, request, made := takeOrder(t, base)
	id, err := worker.ParseID(request)
	if err != nil || id >= made.ID || made.Number < 1 || made.Item != "book" {
		t.Errorf("request %s, order %+v, %v", request, made, err)
	}
	line := `"msg":"order taken","order":"` + made.ID.String() + `","request_id":"` + request + `"`
	harness.Eventually(t, line, func() bool { return strings.Contains(p.Log(), line) })
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(); code != 0 {
		t.Errorf("run.sh: exit %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "flaked.sock")); !os.IsNotExist(err) {
		t.Errorf("the node is still there, or left its socket: %v", err)
	}
}
