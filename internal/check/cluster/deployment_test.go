//go:build linux

package cluster

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestDeployment plays with nodes that have no disk, and release their worker when their pod ends.
func TestDeployment(t *testing.T) {
	r := nodes(t, "flaked-dep", "Deployment", "allowOpen=true")
	r.clients = newClients(r.site)
	r.clients.through("flaked-dep.ids.svc.cluster.local:7609")
	for _, row := range []struct {
		name  string
		event func(t *testing.T, name string, p pod)
	}{
		{"a pod deleted", func(t *testing.T, name string, _ pod) { r.kubectl(t, "delete", "pod", name) }},
		{"a pod deleted without grace", func(t *testing.T, name string, _ pod) {
			r.kubectl(t, "delete", "pod", name, "--force", "--grace-period=0")
		}},
		{"SIGKILL", func(t *testing.T, _ string, p pod) { p.signal(t, syscall.SIGKILL) }},
	} {
		r.play(t, "Deployment, "+row.name, func(t *testing.T) string {
			all, began := r.pods(t), time.Now()
			name := names(all)[0]
			row.event(t, name, all[name])
			return "ready after " + seconds(r.again(t, began, name, all[name]))
		})
	}
	r.play(t, "Deployment, helm upgrade --set flags.log-level=debug", func(t *testing.T) string {
		return r.upgraded(t, "flags.log-level=debug")
	})
	r.play(t, "Deployment, scaled to 5 and to 3", func(t *testing.T) string { return r.scaled(t) })
	r.play(t, "Deployment, workers released", func(t *testing.T) string {
		live := r.held("live", "disconnected", "stopped", "releasing")
		// The pod that was deleted without grace may have been killed. Its worker is held until its lease expires.
		if live < r.replicas || live > r.replicas+1 {
			t.Errorf("%d workers are held, for %d nodes", live, r.replicas)
		}
		return fmt.Sprintf("%d workers are held", live)
	})
}
