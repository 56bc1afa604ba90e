package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

func TestTokenIsRequiredExceptForProbesAndMetrics(t *testing.T) {
	knows := func(token []byte) (*sequence.Rights, bool) { return nil, string(token) == "secret" }
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "bearer secret") }
	browser := func(r *http.Request) { r.SetBasicAuth("anybody", "secret") }
	wrong := func(r *http.Request) { r.SetBasicAuth("secret", "guess") }
	for _, row := range []struct {
		name         string
		authenticate func([]byte) (*sequence.Rights, bool)
		closed       string
		bring        func(*http.Request)
		paths        string
		code         int
	}{
		{"nobody is asked", nil, "", nil, "/ /page.js /livez /readyz /metrics /v1/status /v1/ids /v1/workers " +
			"/api/snowflake/get/x", 200},
		{"probes bring nothing", knows, "", nil, "/livez /readyz /metrics", 200},
		{"others have to", knows, "", nil, "/ /v1/status /v1/ids /v1/workers /v1/decode/5 /api/snowflake/get/x " +
			"/decodeSnowflakeId", 401},
		{"a token", knows, "", bearer, "/livez /v1/status /v1/ids /api/snowflake/get/x", 200},
		{"a password", knows, "", browser, "/v1/status /v1/ids", 200},
		{"another", knows, "", wrong, "/v1/status /v1/ids", 401},
		{"closed", nil, "other machines can reach this", bearer,
			"/ /v1/status /v1/ids /v1/decode/5 /api/snowflake/get/x", 403},
		{"closed, but to probes", nil, "other machines can reach this", nil, "/livez /readyz /metrics", 200},
		{"what is not there is not a secret", knows, "", nil, "/v1/nothing", 404},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr, _ := start(t, Config{Authenticate: row.authenticate, Closed: row.closed, Node: leafCluster})
			for path := range strings.FieldsSeq(row.paths) {
				r := mustRequest("http://" + addr + path)
				if row.bring != nil {
					row.bring(r)
				}
				res, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != row.code {
					t.Errorf("%s: %d, want %d", path, res.StatusCode, row.code)
				}
				if asks := len(res.Header.Values("WWW-Authenticate")); (asks == 2) != (row.code == 401) {
					t.Errorf("%s: %d times WWW-Authenticate", path, asks)
				}
			}
		})
	}
}

// DNS rebinding: requests whose Host is not a name of this machine are refused, because
// another site can point its name at 127.0.0.1.
func TestForeignHostNameIsRefusedOnLoopback(t *testing.T) {
	addr, _ := start(t, Config{Loopback: true, Node: leafCluster})
	for host, code := range map[string]int{
		addr: 200, "localhost:7610": 200, "LocalHost": 200, "[::1]:7610": 200, "127.0.0.2": 200,
		"rebound.example:7610": 403, "10.0.0.1": 403, "localhost.example": 403, "127.0.0.1.example:80": 403,
	} {
		for path, open := range map[string]bool{"/v1/status": false, "/": false, "/livez": true, "/metrics": true} {
			r := mustRequest("http://" + addr + path)
			r.Host = host
			res, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if want := map[bool]int{true: 200, false: code}[open]; res.StatusCode != want {
				t.Errorf("%s as %s: %d, want %d", path, host, res.StatusCode, want)
			}
		}
	}
}

const idPaths = "/v1/ids /api/snowflake/get/x"
const otherPaths = "/v1/status /v1/workers /v1/decode/5 /decodeSnowflakeId"

var siteRequests = []struct {
	name    string
	headers string
	paths   string
	refused bool
}{
	{"a program", "", "/ /v1/status /v1/decode/5 " + idPaths, false},
	{"an address that was typed", "Sec-Fetch-Site: none; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: document",
		"/ /v1/status " + idPaths, false},
	{"this page", "Sec-Fetch-Site: same-origin; Sec-Fetch-Mode: cors", "/v1/status " + idPaths, false},
	{"this page, by POST", "Sec-Fetch-Site: same-origin; Origin: http://HOST", idPaths, false},
	{"this page, in an old browser", "Origin: http://HOST", idPaths, false},
	{"another site", "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: no-cors", "/ " + idPaths + " " + otherPaths, true},
	{"another port of this machine", "Sec-Fetch-Site: same-site; Sec-Fetch-Mode: cors; Origin: " +
		"http://localhost:3000", "/ " + idPaths + " " + otherPaths, true},
	{"another site that says it is this one", "Sec-Fetch-Site: cross-site; Origin: http://HOST", idPaths, true},
	{"another site, in an old browser", "Origin: http://elsewhere.example", "/ " + idPaths + " " + otherPaths, true},
	{"another port, in an old browser", "Origin: http://127.0.0.1:1", idPaths, true},
	{"nobody says which", "Origin: null", idPaths, true},
	{"a link on another site", "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: document",
		"/ /?worker=7", false},
	{"a link that makes IDs", "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: document",
		idPaths + " " + otherPaths, true},
	{"a frame on another site", "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: iframe",
		"/ " + idPaths, true},
	{"probes", "Sec-Fetch-Site: cross-site; Origin: null", "/livez /readyz /metrics", false},
}

// Another site's page may link to the status page, and may request probes and metrics.
// Every other request from it is refused.
func TestRequestsFromOtherSitesAreRefused(t *testing.T) {
	for _, row := range siteRequests {
		t.Run(row.name, func(t *testing.T) {
			cfg := whole(Config{Node: leafCluster})
			made := 0
			reserve := cfg.Reserve
			cfg.Reserve = func(ctx context.Context, n int) (worker.Run, error) { made++; return reserve(ctx, n) }
			// A browser that has stored a password sends it with such requests too.
			cfg.Authenticate = func([]byte) (*sequence.Rights, bool) { return nil, true }
			addr, _ := start(t, cfg)
			for path := range strings.FieldsSeq(row.paths) {
				for _, method := range []string{"GET", "POST"} {
					r := mustRequest("http://" + addr + path)
					r.Method = method
					for header := range strings.SplitSeq(strings.ReplaceAll(row.headers, "HOST", addr), "; ") {
						if name, value, ok := strings.Cut(header, ": "); ok {
							r.Header.Set(name, value)
						}
					}
					res, err := http.DefaultTransport.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					res.Body.Close()
					if refused := res.StatusCode == 403; refused != row.refused && res.StatusCode != 405 {
						t.Errorf("%s %s: %d", method, path, res.StatusCode)
					}
				}
			}
			if row.refused && made > 0 {
				t.Errorf("%d times IDs were taken", made)
			}
		})
	}
}
