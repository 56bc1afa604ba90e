package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// status asks each node at its address for clients, as a client would: with a token, over TLS or over a unix socket. It
// says of each node that does not answer why.
func TestStatusAsksNodesAtTheirAddressesForClients(t *testing.T) {
	t.Parallel()
	dir, ca := t.TempDir(), certtest.NewCA(t, "authority")
	pair := ca.Pair("localhost", time.Now().Add(time.Hour))
	authority := certtest.Write(t, dir, "ca", ca.PEM)
	tokens := certtest.Write(t, dir, "tokens", []byte("0123456789abcdef-token\n"))
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)), "--admin", "off")
	dead := s.Started().Ready()
	names := map[string]string{
		s.Started().Name:                       "plain",
		s.Node().OnSocket().Start().Name:       "socket",
		s.Started("--token-file", tokens).Name: "token",
		s.Started("--tls-cert", certtest.Write(t, dir, "cert", pair.Cert), "--tls-key", certtest.Write(t, dir, "key", pair.Key)).Name: "tls",
		dead.Name: "dead",
	}
	// ask returns what status says of each node: SAYS, and why there is no answer.
	ask := func(flags ...string) map[string]string {
		r := s.Command(append([]string{"status", "-o", "json"}, flags...)...)
		var report health.Report
		if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
			t.Fatalf("%v: %s%s", err, r.Stdout, r.Stderr)
		}
		said := make(map[string]string)
		for _, w := range report.Workers {
			said[names[w.Name]] = strings.TrimSuffix(w.SaysText()+": "+w.Why, ": ")
		}
		return said
	}
	dead.Until("all nodes are ready", func() bool {
		plain, secure := ask("--token-file", tokens), ask("--tls-ca", authority)
		return plain["plain"] == "ready" && plain["token"] == "ready" && secure["socket"] == "ready" && secure["tls"] == "ready"
	})
	dead.Kill()
	for _, row := range []struct {
		flags []string
		want  map[string]string
	}{
		{nil, map[string]string{"plain": "ready", "socket": "ready", "dead": "no answer: connection refused",
			"token": "access denied: -NOAUTH ", "tls": "access denied: -ERR this port requires TLS"}},
		{[]string{"--token-file", tokens}, map[string]string{"plain": "ready", "token": "ready", "socket": "ready"}},
		{[]string{"--tls-ca", authority}, map[string]string{"plain": "TLS failed: ", "tls": "ready", "socket": "ready",
			"dead": "no answer: connection refused"}},
	} {
		// a node may refuse for a moment, because its disk is slow
		harness.Eventually(t, fmt.Sprintf("with %q, status says %v", row.flags, row.want), func() bool {
			said := ask(row.flags...)
			for name, want := range row.want {
				if got := said[name]; got != want && (want == "ready" || !strings.HasPrefix(got, want)) {
					return false
				}
			}
			return true
		})
	}
	s.Command("status").Wants(t, 4, "nodes asked: 2 answered, 1 did not answer (connection refused), 2 denied access (-")
}
