package e2e

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/internal/testkit/zktest"
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

// adminFlags returns the flags of a node with an admin port over TLS.
func (p *pki) adminFlags(args ...string) []string {
	return append([]string{"--admin", "0.0.0.0:0", "--advertise", "127.0.0.1", "--tls-cert", p.file("node.pem"), "--tls-key", p.file("node.key")}, args...)
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

// onSocket makes the node serve clients on a unix socket, which never uses TLS.
func (n *node) onSocket() *node {
	dir, err := os.MkdirTemp("", "e2e") // short: socket paths have about 100 bytes
	if err != nil {
		n.site.t.Fatal(err)
	}
	n.site.t.Cleanup(func() { os.RemoveAll(dir) })
	n.listen = "unix:" + filepath.Join(dir, "s")
	return n
}

// The record of a node says that its admin port uses TLS. Commands that ask the node check its
// certificate, and say what to do if they cannot. A node with plain HTTP is asked as before.
func TestNodesAreAskedOverTLS(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	token := certtest.Write(t, p.dir, "token", []byte("asked-over-tls-41b7f0c2a9\n"))
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	plain := s.node("--admin", "127.0.0.1:0").start().ready()
	secure := s.node(p.adminFlags("--token-file", token)...).onSocket()
	secure.start()
	addr := httpsAt(t, secure.proc)
	secure.until("ready", func() bool {
		code, _, _, err := httpsGet(p.client(), "https://"+addr+"/readyz", "")
		return err == nil && code == 200
	})
	status := func(env []string, args ...string) result {
		return executeEnv(t, env, s.build.binary(t), append([]string{"status", "--zk", s.connect}, args...)...)
	}
	trust, foreign := []string{"--tls-ca", p.file("servers.pem")}, []string{"--tls-ca", p.file("customers.pem")}
	for _, row := range []struct {
		name string
		env  []string
		args []string
		says string // in the row of the node
		line string // below the table
	}{
		{"its authority and its token", nil, append(trust, "--token-file", token), "ready", "nodes asked: 2 answered"},
		{"the token in the environment", []string{"FLAKED_TOKEN=asked-over-tls-41b7f0c2a9"}, trust, "ready", "nodes asked: 2 answered"},
		{"no token", nil, trust, "access denied", "1 denied access (--token-file, or --tls-cert and --tls-key)"},
		{"no authority", nil, []string{"--token-file", token}, "TLS failed", "Give the authority of its certificate with --tls-ca FILE"},
		{"another authority", nil, append(foreign, "--token-file", token), "TLS failed", "Give the authority of its certificate with --tls-ca FILE"},
		{"another name", nil, append(trust, "--tls-server-name", "ids-9"), "TLS failed", "Give the certificate's name with --tls-server-name NAME"},
	} {
		r := status(row.env, row.args...)
		if !regexp.MustCompile(`(?m)^ *\d+ +`+secure.name+` .* live +`+row.says+` `).MatchString(r.stdout) || !strings.Contains(r.stdout, row.line) {
			t.Errorf("%s: exit %d\n%s%s", row.name, r.code, r.stdout, r.stderr)
		}
		if !regexp.MustCompile(`(?m)^ *\d+ +` + plain.name + ` .* live +ready `).MatchString(r.stdout) {
			t.Errorf("%s: the plain node:\n%s", row.name, r.stdout)
		}
	}
	// A node that requires client certificates shows its state to a client that has one.
	strict := s.node(p.adminFlags("--tls-client-ca", p.file("customers.pem"))...).onSocket()
	strict.start().ready()
	cert, key := p.withPair(p.customers, "customer", time.Now().Add(time.Hour))
	for says, args := range map[string][]string{"TLS failed": nil, "access denied": {"--tls-ca", p.file("servers.pem")}, "ready": {"--tls-ca", p.file("servers.pem"), "--tls-cert", cert, "--tls-key", key}} {
		if r := status(nil, args...); !regexp.MustCompile(`(?m)^ *\d+ +` + strict.name + ` .* live +` + says).MatchString(r.stdout) {
			t.Errorf("want %q:\n%s%s", says, r.stdout, r.stderr)
		}
	}
	strict.stop()

	// The node takes a new certificate without a restart. An expired one is not accepted.
	pair := p.servers.Pair("late", time.Now().Add(-time.Minute))
	certtest.Write(t, p.dir, "node.pem", pair.Cert)
	certtest.Write(t, p.dir, "node.key", pair.Key)
	secure.proc.signal(syscall.SIGHUP)
	eventually(t, "the new certificate has expired", func() bool {
		return strings.Contains(status(nil, append(trust, "--token-file", token)...).stdout, "The node needs another certificate, or this machine's clock is wrong")
	})
	p.serve("second")
	eventually(t, "the next one is good", func() bool {
		_, _, name, err := httpsGet(p.client(), "https://"+addr+"/livez", "")
		return err == nil && name == "second"
	})
	status(nil, append(trust, "--token-file", token)...).wants(t, 0, "nodes asked: 2 answered")

	// doctor finds the port in use, beside the node.
	r := s.command("doctor", "--state-dir", secure.dir, "--heartbeat", "200ms", "--listen", secure.listen, "--admin", addr, "--timeout", "20s")
	if !regexp.MustCompile(`(?m)^ok +ports +` + regexp.QuoteMeta(addr) + ` is in use, and a node runs here`).MatchString(r.stdout) {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
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

// On a loopback address, the admin port of a node with a certificate speaks plain HTTP. The health check asks the port for clients, which uses TLS.
func TestAdminPortIsPlainOnLoopback(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	for _, extra := range [][]string{nil, {"--admin", "0.0.0.0:0"}} {
		node, addr := guarded(t, nil, append(append(p.flags(), "--admin", "127.0.0.1:0"), extra...)...)
		for _, row := range []struct {
			args []string
			code int
			text string
		}{
			{[]string{"--tls-ca", p.file("servers.pem")}, 0, "OK\n"},
			{[]string{"--tls-ca", p.file("customers.pem")}, 3, "Give the authority of its certificate with --tls-ca FILE"},
			{nil, 1, "this port requires TLS"},
		} {
			if r := execute(t, shipped.binary(t), append([]string{"healthcheck", "--addr", addr}, row.args...)...); r.code != row.code || !strings.Contains(r.stdout+r.stderr, row.text) {
				t.Errorf("healthcheck %v: %+v", row.args, r)
			}
		}
		if extra != nil {
			continue
		}
		at := httpAt(t, node)
		if code, body := httpGet(t, at+"/livez", ""); code != 200 {
			t.Errorf("%d %s", code, body)
		}
		if _, _, _, err := httpsGet(p.client(), strings.Replace(at, "http:", "https:", 1)+"/livez", ""); err == nil || !strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
			t.Error(err)
		}
	}
}
