//go:build linux

package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/client"
	codes "github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/internal/testkit/harness"
)

const (
	oldToken = "0123456789abcdef0123456789abcdef"
	newToken = "fedcba9876543210fedcba9876543210"
	// spread is how long a changed Secret takes to reach all nodes, as docs/deploy.md says.
	spread = 2 * time.Minute
)

// TestRotation replaces the token of the clients and the certificate of the nodes, as docs/deploy.md says.
func TestRotation(t *testing.T) {
	prepared(t)
	ca := certtest.NewCA(t, "authority")
	certificate := func(name string) {
		pair := ca.Pair(name, time.Now().Add(24*time.Hour), "flaked-tls", "*.flaked-tls-nodes.ids.svc")
		secret(t, ids, "tls", map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key, "ca.crt": ca.PEM})
	}
	tokens := func(all ...string) {
		secret(t, ids, "tokens", map[string][]byte{"tokens": []byte(strings.Join(all, "\n"))})
	}
	certificate("first")
	tokens(oldToken)
	r := nodes(t, "flaked-tls", "StatefulSet", "tokensSecret=tokens", "tls.secret=tls")
	for _, flags := range [][]string{{numbers}, {ticks, "--mode", "ordered"}} {
		r.kubectl(t, append([]string{"exec", "flaked-tls-0", "--", "/usr/local/bin/flaked", "seq", "create"}, flags...)...)
	}
	config := &tls.Config{RootCAs: ca.Pool()}
	asking := func(token string) *clients {
		c := newClients(r.site)
		c.knowing("Go client", client.Config{Token: token, TLS: config, Addrs: r.certified()}, numbers, ticks)
		service := config.Clone()
		service.ServerName = "flaked-tls"
		c.knowing("Go client of the Service", client.Config{Token: token, TLS: service, Addrs: []string{"flaked-tls.ids.svc:7609"}})
		return c
	}
	r.clients = asking(oldToken)

	r.play(t, "certificate and token replaced", func(t *testing.T) string {
		began := time.Now()
		certificate("second")
		tokens(oldToken, newToken)
		added := r.everywhere(t, began, "know the new ones", func(address string, _ pod) bool {
			name, err := greet(address, dialog.Client{Token: newToken, TLS: config})
			return err == nil && name == "second"
		})
		old := r.clients
		r.clients = asking(newToken)
		old.end()
		text, refused := old.seen()
		if refused > 0 {
			t.Errorf("with the old token %d IDs or values were refused", refused)
		}
		// Nodes send the first one to each other, for the ordered sequence.
		began = time.Now()
		tokens(newToken, oldToken)
		exchanged := r.everywhere(t, began, "have the new token first", func(_ string, p pod) bool {
			mounted := fmt.Sprintf("%s/%s/kubelet/pods/%s/volumes/kubernetes.io~secret/flaked-tokens/tokens", files, p.node, p.uid)
			all, _ := os.ReadFile(mounted)
			return strings.HasPrefix(string(all), newToken)
		})
		harness.Pass(t.Context(), 2*time.Second) // a node reads its files every second
		began = time.Now()
		tokens(newToken)
		removed := r.everywhere(t, began, "refuse the old token", func(address string, _ pod) bool {
			_, err := greet(address, dialog.Client{Token: oldToken, TLS: config})
			refusal, ok := errors.AsType[*codes.ReplyError](err)
			return ok && refusal.Code == codes.WRONGPASS
		})
		return fmt.Sprintf("all nodes know the new ones after %s, have the new token first after %s, and refuse the old one after %s\n    %s\n    and with the new token",
			seconds(added), seconds(exchanged), seconds(removed), text)
	})
}

// certified returns the addresses of the nodes as their certificates have them.
func (r *release) certified() (all []string) {
	for _, address := range r.addresses() {
		all = append(all, strings.ReplaceAll(address, ".cluster.local", ""))
	}
	return all
}

// everywhere waits until all nodes are as they should be.
func (r *release) everywhere(t *testing.T, began time.Time, what string, ok func(address string, p pod) bool) time.Duration {
	t.Helper()
	return r.await(t, began, "such that all nodes "+what, spread, func(all map[string]pod) bool {
		for i, name := range names(all) {
			if !ok(r.certified()[i], all[name]) {
				return false
			}
		}
		return true
	})
}

// greet connects to a node, and returns the name in the certificate that it shows.
func greet(address string, c dialog.Client) (name string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := c.Dial(ctx, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}
