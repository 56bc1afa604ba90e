package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

var servingHTTP = regexp.MustCompile(`admin: serving HTTP: address=\S+:(\d+)`)

// A node that is cut off from ZooKeeper still answers over HTTP within two seconds. It reports the
// loss, along with the records that it read last.
func TestAdminWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.node("--admin", "127.0.0.1:0")
	network := n.network()
	n.start().ready()
	var port []string
	n.until("it serves HTTP", func() bool { port = servingHTTP.FindStringSubmatch(n.proc.log()); return port != nil })
	get := func(path string) string {
		c := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Get("http://127.0.0.1:" + port[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %v", path, res.Status, err)
		}
		return string(body)
	}
	has := func(path, want string) {
		t.Helper()
		eventually(t, path+" has "+want, func() bool { return strings.Contains(get(path), want) })
	}
	has("/v1/workers", `"state":"live"`)
	has("/metrics", `flaked_cluster_slots{cluster="default",state="live"} 1`)
	has("/readyz?verbose", "[+] zookeeper: ")
	network.cut()
	has("/metrics", `flaked_worker_degraded{trouble="zookeeper",worker="0"} 1`)
	for path, want := range map[string]string{
		"/livez": "ok", "/readyz?verbose": "[!] zookeeper: ", "/readyz": "ok", "/v1/ids": `{"ids":["`,
		"/v1/status": `"degraded":["zookeeper"`, "/api/snowflake/get/order": "",
	} {
		if body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %q", path, body, want)
		}
	}
	network.heal()
	has("/metrics", `flaked_worker_degraded{trouble="zookeeper",worker="0"} 0`)
	n.get(10)
}
