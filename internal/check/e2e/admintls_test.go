package e2e

import (
	"crypto/tls"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

var servingHTTPS = regexp.MustCompile(`admin: serving HTTPS: address=\S+:(\d+)`)

// httpsAt waits until the process serves HTTPS and returns the address of its admin port.
func httpsAt(t testing.TB, p *process) (addr string) {
	t.Helper()
	eventually(t, "it serves HTTPS", func() bool {
		if m := servingHTTPS.FindStringSubmatch(p.log()); m != nil {
			addr = "127.0.0.1:" + m[1]
		}
		return addr != ""
	})
	return addr
}

// httpsGet returns the status and the body of a GET request on a connection of its own, and the
// name in the server's certificate.
func httpsGet(config *tls.Config, url, token string) (code int, body, name string, err error) {
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return 0, "", "", err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	c := http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	res, err := c.Do(r)
	if err != nil {
		return 0, "", "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), res.TLS.PeerCertificates[0].Subject.CommonName, err
}

// Probes, metrics and the page answer over TLS, to other programs too. With --tls-client-ca all
// but probes and metrics needs a client certificate.
func TestAdminPortOverTLS(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	open, _ := guarded(t, nil, append(p.flags(), "--admin", "0.0.0.0:0", "--allow-open")...)
	both, _ := guarded(t, nil, append(p.flags(), "--admin", "0.0.0.0:0", "--tls-client-ca", p.file("customers.pem"))...)
	cert, key := p.withPair(p.customers, "customer", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	customer := p.client()
	customer.Certificates = []tls.Certificate{pair}
	for _, row := range []struct {
		name   string
		at     *process
		config *tls.Config
		others int // status of paths that are not probes
	}{
		{"without client certificates", open, p.client(), 200},
		{"with client certificates, without one", both, p.client(), 403},
		{"with client certificates, with one", both, customer, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr := httpsAt(t, row.at)
			for path, want := range map[string]int{
				"/livez": 200, "/readyz": 200, "/metrics": 200,
				"/": row.others, "/v1/status": row.others, "/v1/ids": row.others,
			} {
				if code, body, _, err := httpsGet(row.config, "https://"+addr+path, ""); err != nil || code != want {
					t.Errorf("%s: %d %.200s %v, want %d", path, code, body, err, want)
				}
			}
		})
	}
	foreign := p.client()
	strange, strangeKey := p.withPair(p.servers, "stranger", time.Now().Add(time.Hour))
	if pair, err = tls.LoadX509KeyPair(strange, strangeKey); err != nil {
		t.Fatal(err)
	}
	foreign.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	if code, _, _, err := httpsGet(foreign, "https://"+httpsAt(t, both)+"/livez", ""); err == nil {
		t.Errorf("a client certificate of another authority is accepted: %d", code)
	}
	if _, body, _, err := httpsGet(p.client(), "https://"+httpsAt(t, open)+"/v1/status", ""); err != nil || !strings.Contains(body, `"admin":"https://0.0.0.0:`) {
		t.Errorf("%s %v", body, err)
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl")
	}
	ask := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), curl, append([]string{"-sS", "--max-time", "20"}, args...)...).CombinedOutput()
		return string(out), err
	}
	out, err := ask("--cacert", p.file("servers.pem"), "--cert", cert, "--key", key, "https://"+httpsAt(t, both)+"/v1/ids")
	if err != nil || !strings.Contains(out, `{"ids":["`) {
		t.Errorf("%s %v", out, err)
	}
	out, err = ask("--cacert", p.file("servers.pem"), "https://"+httpsAt(t, both)+"/v1/ids")
	if err != nil || !strings.Contains(out, "client certificate missing") {
		t.Errorf("%s %v", out, err)
	}
	out, err = ask("http://" + httpsAt(t, open) + "/livez")
	if err != nil || !strings.Contains(out, "HTTP request to an HTTPS server") {
		t.Errorf("%s %v", out, err)
	}
}
