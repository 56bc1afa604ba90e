package web

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

func secretToken(token []byte) (*sequence.Rights, bool) { return nil, string(token) == "secret" }

const (
	probePaths = "/livez /readyz /metrics"
	idPaths    = "/v1/ids /api/snowflake/get/x"
	otherPaths = "/v1/status /v1/workers /v1/decode/5 /decodeSnowflakeId?snowflakeId=5"
	browsed    = "; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: document"
)

// withTokens is a node with tokens. A browser that has stored a password sends it with all requests, also with those
// for other sites' pages.
var (
	withTokens = Config{Authenticate: secretToken}
	browser    = Config{Authenticate: func([]byte) (*sequence.Rights, bool) { return nil, true }}
	closed     = Config{Closed: "other machines can reach this"}
	loopback   = Config{Loopback: true} // requests must name this machine: another site can point its name at 127.0.0.1
)

// Probes and metrics are open. For the rest, a request needs what the node requires, and must not be of another site's
// page: the page may only link to the status page.
func TestRequestsAreAdmitted(t *testing.T) {
	for _, row := range []struct {
		name    string
		cfg     Config
		headers string
		paths   string
		code    int
	}{
		{"nobody is asked", Config{}, "", "/ /page.js " + probePaths + " " + otherPaths + " " + idPaths, 200},
		{"probes bring nothing", withTokens, "", probePaths, 200},
		{"others need a token", withTokens, "", "/ " + otherPaths + " " + idPaths, 401},
		{"a token", withTokens, "Authorization: bearer secret", "/livez /v1/status " + idPaths, 200},
		{"a password", withTokens, "Authorization: Basic YW55Ym9keTpzZWNyZXQ=", "/v1/status " + idPaths, 200},
		{"another password", withTokens, "Authorization: Basic c2VjcmV0Omd1ZXNz", "/v1/status " + idPaths, 401},
		{"a path that is not there is no secret", withTokens, "", "/v1/nothing", 404},
		{"closed", closed, "Authorization: Bearer secret", "/ " + otherPaths + " " + idPaths, 403},
		{"closed, but to probes", closed, "", probePaths, 200},

		{"by address", loopback, "", "/ /v1/status " + idPaths, 200},
		{"by name", loopback, "Host: LocalHost", "/ /v1/status", 200},
		{"by name and port", loopback, "Host: localhost:7610", "/ /v1/status", 200},
		{"by an address of IPv6", loopback, "Host: [::1]:7610", "/ /v1/status", 200},
		{"by another site's name", loopback, "Host: rebound.example:7610", "/ /v1/status " + idPaths, 403},
		{"by an address of another machine", loopback, "Host: 10.0.0.1", "/ /v1/status", 403},
		{"by a name like this machine's", loopback, "Host: localhost.example", "/ /v1/status", 403},
		{"by a name like its address", loopback, "Host: 127.0.0.1.example:80", "/ /v1/status", 403},
		{"probes by any name", loopback, "Host: rebound.example", probePaths, 200},

		{"an address that was typed", browser, "Sec-Fetch-Site: none" + browsed, "/ /v1/status " + idPaths, 200},
		{"this page", browser, "Sec-Fetch-Site: same-origin; Sec-Fetch-Mode: cors", "/v1/status " + idPaths, 200},
		{"this page, in an old browser", browser, "Origin: http://HOST", idPaths, 200},
		{"another site", browser, "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: no-cors", "/ " + idPaths + " " + otherPaths,
			403},
		{"another port of this machine", browser, "Sec-Fetch-Site: same-site", "/ " + idPaths + " " + otherPaths, 403},
		{"another site that says it is this one", browser, "Sec-Fetch-Site: cross-site; Origin: http://HOST", idPaths, 403},
		{"another site, in an old browser", browser, "Origin: http://elsewhere.example", "/ " + idPaths, 403},
		{"another port, in an old browser", browser, "Origin: http://127.0.0.1:1", idPaths, 403},
		{"nobody says which", browser, "Origin: null", idPaths, 403},
		{"a link on another site", browser, "Sec-Fetch-Site: cross-site" + browsed, "/ /?worker=7", 200},
		{"a link that makes IDs", browser, "Sec-Fetch-Site: cross-site" + browsed, idPaths + " " + otherPaths, 403},
		{"a frame on another site", browser,
			"Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: iframe", "/", 403},
		{"probes of another site", browser, "Sec-Fetch-Site: cross-site; Origin: null", probePaths, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			made := 0
			row.cfg.Node = leafCluster
			row.cfg.Reserve = func(context.Context, int) (worker.Run, error) {
				made++
				return worker.Run{First: 5, Step: 1, Len: 1}, nil
			}
			addr, _ := start(t, row.cfg)
			for path := range strings.FieldsSeq(row.paths) {
				for _, method := range []string{"GET", "POST"} {
					r := request(t, method, "http://"+addr+path)
					for header := range strings.SplitSeq(strings.ReplaceAll(row.headers, "HOST", addr), "; ") {
						name, value, _ := strings.Cut(header, ": ")
						switch name {
						case "":
						case "Host":
							r.Host = value
						default:
							r.Header.Set(name, value)
						}
					}
					code, header, _ := send(t, r)
					if code != row.code && !(method == "POST" && code == 405) {
						t.Errorf("%s %s: %d, want %d", method, path, code, row.code)
					}
					if asks := len(header.Values("WWW-Authenticate")); (asks == 2) != (code == 401) {
						t.Errorf("%s %s: %d times WWW-Authenticate", method, path, asks)
					}
				}
			}
			if row.code != 200 && made > 0 {
				t.Errorf("%d times IDs were taken", made)
			}
		})
	}
}

// Probes and metrics need no client certificate, as a kubelet has none. All else needs one.
func TestClientCertificate(t *testing.T) {
	servers, customers := certtest.NewCA(t, "servers"), certtest.NewCA(t, "customers")
	config := &tls.Config{Certificates: []tls.Certificate{servers.Pair("node", time.Now().Add(time.Hour)).TLS(t)},
		ClientCAs: customers.Pool(), ClientAuth: tls.VerifyClientCertIfGiven}
	pair := customers.Pair("customer", time.Now().Add(time.Hour)).TLS(t)
	tokens, _ := start(t, Config{TLS: config, ClientCertificate: true, Authenticate: secretToken})
	plain, _ := start(t, Config{TLS: config, ClientCertificate: true})
	for _, row := range []struct {
		addr, path, token string
		certified         bool
		code              int
	}{
		{tokens, "/livez", "", false, 200},
		{tokens, "/metrics", "", false, 200},
		{tokens, "/page.css", "", false, 200},
		{tokens, "/v1/status", "secret", false, 403},
		{tokens, "/v1/status", "", true, 401},
		{tokens, "/v1/status", "secret", true, 200},
		{tokens, "/tinyid/id/nextIdSimple?bizType=a&token=secret", "", false, 403},
		{tokens, "/tinyid/id/nextIdSimple?bizType=a&token=no", "", true, 200},
		{plain, "/", "", false, 403},
		{plain, "/v1/ids", "", true, 200},
	} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: servers.Pool()}, DisableKeepAlives: true,
			ForceAttemptHTTP2: true}
		if row.certified {
			transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
		}
		req := request(t, "GET", "https://"+row.addr+row.path)
		if row.token != "" {
			req.Header.Set("Authorization", "Bearer "+row.token)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != row.code || row.code == 403 && !strings.Contains(string(body), "client certificate missing") {
			t.Errorf("%+v: %d %s", row, res.StatusCode, body)
		}
		if res.ProtoMajor != 1 {
			t.Errorf("%s: bounds count connections, so each may have one request at a time", res.Proto)
		}
	}
}
