//go:build linux

package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// TestSecureZooKeeper plays with nodes that reach ZooKeeper by TLS, with a certificate and a password of their own.
func TestSecureZooKeeper(t *testing.T) {
	prepared(t)
	secret(t, ids, "zk-tls", map[string][]byte{"ca.crt": file(t, "ca.crt"), "tls.crt": file(t, "zookeeper.crt"), "tls.key": file(t, "zookeeper.key")})
	secret(t, ids, "zk-auth", map[string][]byte{"auth": []byte("flaked:secret")})
	r := nodes(t, "flaked-safe", "StatefulSet", "allowOpen=true", "zookeeper.servers="+escaped(secured+"/safe"),
		"zookeeper.tls.secret=zk-tls", "zookeeper.tls.clientCertificate=true", "zookeeper.authSecret=zk-auth")
	r.kubectl(t, "exec", "flaked-safe-0", "--", "/usr/local/bin/flaked", "seq", "create", numbers)
	r.ask()
	workers := r.workers(t)
	r.play(t, "ZooKeeper with TLS, a pod deleted", func(t *testing.T) string {
		before, began := r.pods(t)["flaked-safe-1"], time.Now()
		r.kubectl(t, "delete", "pod", "flaked-safe-1")
		took := r.again(t, began, "flaked-safe-1", before)
		r.same(t, workers)
		return "ready after " + seconds(took)
	})
	r.play(t, "ZooKeeper with TLS, its pods replaced", func(t *testing.T) string {
		seen := r.replaced(t)
		r.same(t, workers)
		return seen
	})

	dir := t.TempDir()
	authority := []string{"--zk-tls-ca", files + "/ca.crt"}
	unknown := []string{"--zk-tls-ca", certtest.Write(t, dir, "unknown.crt", certtest.NewCA(t, "unknown").PEM)}
	own := []string{"--zk-tls-cert", files + "/zookeeper.crt", "--zk-tls-key", files + "/zookeeper.key"}
	other := []string{"--zk-tls-cert", files + "/admin.crt", "--zk-tls-key", files + "/admin.key"}
	password := []string{"--zk-auth-file", certtest.Write(t, dir, "auth", []byte("flaked:secret"))}
	r.site.Connect = secured + "/safe"
	for _, row := range []struct {
		name  string
		flags []string
		code  int // -1: it shows the nodes
		says  string
	}{
		{"the nodes' certificate and password", slices.Concat(authority, own, password), -1, "live"},
		{"another certificate and the password", slices.Concat(authority, other, password), -1, "live"},
		{"the nodes' certificate only", slices.Concat(authority, own), -1, "live"}, // as docs/security.md says
		{"another certificate only", slices.Concat(authority, other), 1, "denied"},
		{"the password only", slices.Concat(authority, password), 3, "certificate"},
		{"another authority", slices.Concat(unknown, own, password), 3, "unknown authority"},
	} {
		t.Run("ZooKeeper with TLS, asked with "+row.name, func(t *testing.T) {
			seen := r.site.Command(append([]string{"status", "--cluster", r.name}, row.flags...)...)
			if row.code < 0 {
				seen.Reads(t, row.says)
			} else {
				seen.Wants(t, row.code, row.says)
			}
		})
	}
}
