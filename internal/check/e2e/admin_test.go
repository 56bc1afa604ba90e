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

// httpGet returns the status and the body of a GET request. It sends the token unless that is
// empty.
func httpGet(t testing.TB, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// httpAt waits until the process serves HTTP and returns the URL of its admin port.
func httpAt(t testing.TB, p *process) (url string) {
	t.Helper()
	eventually(t, "it serves HTTP", func() bool {
		if m := servingHTTP.FindStringSubmatch(p.log()); m != nil {
			url = "http://127.0.0.1:" + m[1]
		}
		return url != ""
	})
	return url
}

// A node that is cut off from ZooKeeper still answers over HTTP within two seconds. It reports the
// loss, along with the records that it read last.
func TestAdminWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.node("--admin", "127.0.0.1:0")
	network := n.network()
	n.start().ready()
	at := httpAt(t, n.proc)
	line := func(path, want string) func() bool {
		return func() bool { _, body := httpGet(t, at+path, ""); return strings.Contains(body, want) }
	}
	eventually(t, "the workers are read", line("/v1/workers", `"state":"live"`))
	eventually(t, "they are counted", line("/metrics", `flaked_cluster_slots{cluster="default",state="live"} 1`))
	eventually(t, "all is well", line("/readyz?verbose", "[+] zookeeper: "))

	network.cut()
	eventually(t, "the loss is seen", line("/metrics", `flaked_worker_degraded{trouble="zookeeper",worker="0"} 1`))
	for path, want := range map[string]string{
		"/livez": "ok", "/readyz?verbose": "[!] zookeeper: ", "/readyz": "ok", "/v1/ids": `{"ids":["`,
		"/v1/status": `"degraded":["zookeeper"`, "/metrics": `flaked_zookeeper_session{worker="0"}`,
		"/api/snowflake/get/order": "",
	} {
		began := time.Now()
		if code, body := httpGet(t, at+path, ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %q", path, code, body, want)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s took %s", path, took)
		}
	}
	network.heal()
	eventually(t, "all is well again", line("/metrics", `flaked_worker_degraded{trouble="zookeeper",worker="0"} 0`))
	n.get(10)
}
