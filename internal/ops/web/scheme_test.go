package web

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/sequence"
)

// client returns an HTTP client that makes a connection for each request.
func client(t *testing.T, config *tls.Config) *http.Client {
	return &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
}

func secured(t *testing.T, ca *certtest.CA) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{ca.Pair("node", time.Now().Add(time.Hour)).TLS(t)}}
}

// Probes and metrics need no client certificate, as a kubelet has none. All else needs one.
func TestClientCertificate(t *testing.T) {
	servers, customers := certtest.NewCA(t, "servers"), certtest.NewCA(t, "customers")
	config := secured(t, servers)
	config.ClientCAs, config.ClientAuth = customers.Pool(), tls.VerifyClientCertIfGiven
	pair := customers.Pair("customer", time.Now().Add(time.Hour)).TLS(t)
	right := func(token []byte) (*sequence.Rights, bool) { return nil, string(token) == "right" }
	tokens, _ := start(t, Config{TLS: config, ClientCertificate: true, Authenticate: right})
	plain, _ := start(t, Config{TLS: config, ClientCertificate: true})
	for _, row := range []struct {
		name, addr, path, token string
		certified               bool
		code                    int
	}{
		{"a probe", tokens, "/livez", "", false, 200},
		{"metrics", tokens, "/metrics", "", false, 200},
		{"a style", tokens, "/page.css", "", false, 200},
		{"status with nothing", tokens, "/v1/status", "", false, 403},
		{"status with a token", tokens, "/v1/status", "right", false, 403},
		{"status with a certificate", tokens, "/v1/status", "", true, 401},
		{"status with both", tokens, "/v1/status", "right", true, 200},
		{"tinyid with a token", tokens, "/tinyid/id/nextId?bizType=a&token=right", "", false, 403},
		{"tinyid with both", tokens, "/tinyid/id/nextId?bizType=a&token=right", "", true, 200},
		{"status without tokens", plain, "/v1/status", "", false, 403},
		{"status without tokens, with a certificate", plain, "/v1/status", "", true, 200},
		{"a page", plain, "/", "", false, 403},
		{"IDs", plain, "/v1/ids", "", true, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			config := &tls.Config{RootCAs: servers.Pool()}
			if row.certified {
				config.Certificates = []tls.Certificate{pair}
			}
			req, err := http.NewRequest("GET", "https://"+row.addr+row.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if row.token != "" {
				req.Header.Set("Authorization", "Bearer "+row.token)
			}
			res, err := client(t, config).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != row.code {
				t.Errorf("%d %s, want %d", res.StatusCode, body, row.code)
			}
			if row.code == 403 && !strings.Contains(string(body), "client certificate missing") {
				t.Errorf("%s", body)
			}
			if res.ProtoMajor != 1 {
				t.Errorf("%s: bounds count connections, so each may have one request at a time", res.Proto)
			}
		})
	}
}
