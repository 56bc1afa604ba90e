package admin

import (
	"net/http"
	"strings"
	"testing"
)

func TestAccess(t *testing.T) {
	knows := func(token []byte) bool { return string(token) == "secret" }
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "bearer secret") }
	browser := func(r *http.Request) { r.SetBasicAuth("anybody", "secret") }
	wrong := func(r *http.Request) { r.SetBasicAuth("secret", "guess") }
	for _, row := range []struct {
		name         string
		authenticate func([]byte) bool
		closed       string
		bring        func(*http.Request)
		paths        string
		code         int
	}{
		{"nobody is asked", nil, "", nil, "/ /page.js /page/decode/5 /livez /readyz /metrics /v1/status /v1/ids /v1/workers /api/snowflake/get/x", 200},
		{"probes bring nothing", knows, "", nil, "/livez /readyz /metrics", 200},
		{"others have to", knows, "", nil, "/ /page/live /page/decode/5 /v1/status /v1/ids /v1/workers /v1/decode/5 /api/snowflake/get/x /decodeSnowflakeId /debug/pprof/", 401},
		{"a token", knows, "", bearer, "/livez /v1/status /v1/ids /api/snowflake/get/x /debug/pprof/", 200},
		{"a password", knows, "", browser, "/v1/status /v1/ids", 200},
		{"another", knows, "", wrong, "/v1/status /v1/ids", 401},
		{"closed", nil, "other machines can reach this", bearer, "/ /page/live /page/decode/5 /v1/status /v1/ids /v1/decode/5 /api/snowflake/get/x /debug/pprof/", 403},
		{"closed, but to probes", nil, "other machines can reach this", nil, "/livez /readyz /metrics", 200},
		{"what is not there is not a secret", knows, "", nil, "/v1/nothing", 404},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr, _ := start(t, Config{Authenticate: row.authenticate, Closed: row.closed, Workers: leafCluster, Pprof: true})
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

// A name that has come to mean this machine is another site's.
func TestAccessByName(t *testing.T) {
	addr, _ := start(t, Config{Loopback: true, Workers: leafCluster})
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

// Nobody gets profiles who has not asked for them.
func TestPprofIsOff(t *testing.T) {
	addr, _ := start(t, Config{})
	if code, _, _ := do(t, "GET", "http://"+addr+"/debug/pprof/"); code != 404 {
		t.Errorf("%d, want 404", code)
	}
}
