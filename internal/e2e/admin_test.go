package e2e

import (
	"io"
	"net/http"
	"regexp"
	"testing"
)

var servingHTTP = regexp.MustCompile(`admin: serving HTTP: address=\S+:(\d+)`)

// httpGet is the status and body of a request, with a token if there is one.
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

// What the binary's flags let whom have over HTTP.
func TestAdminAccess(t *testing.T) {
	for _, row := range []struct {
		name   string
		env    []string
		args   []string
		token  string
		others int // status of what is not a probe
	}{
		{"loopback", nil, []string{"--admin", "127.0.0.1:0"}, "", 200},
		{"open to probes", nil, []string{"--admin", "0.0.0.0:0"}, "", 403},
		{"open on purpose", nil, []string{"--admin", "0.0.0.0:0", "--allow-open"}, "", 200},
		{"with tokens, without one", []string{"FLAKED_TOKEN=secret-of-the-admin-port"}, []string{"--admin", "127.0.0.1:0"}, "", 401},
		{"with tokens, with one", []string{"FLAKED_TOKEN=secret-of-the-admin-port"}, []string{"--admin", "127.0.0.1:0"}, "secret-of-the-admin-port", 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, _ := guarded(t, row.env, append([]string{"--listen", "127.0.0.1:0"}, row.args...)...)
			var at string
			eventually(t, "it serves HTTP", func() bool {
				if m := servingHTTP.FindStringSubmatch(p.log()); m != nil {
					at = "http://127.0.0.1:" + m[1]
				}
				return at != ""
			})
			for _, path := range []string{"/livez", "/readyz", "/metrics"} {
				if code, body := httpGet(t, at+path, ""); code != 200 {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			for _, path := range []string{"/v1/status", "/v1/ids?n=3", "/v1/workers", "/api/snowflake/get/order"} {
				if code, body := httpGet(t, at+path, row.token); code != row.others {
					t.Errorf("%s: %d %s, want %d", path, code, body, row.others)
				}
			}
		})
	}
}
