//go:build linux

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/testkit/harness"
)

// stateful installs a StatefulSet with local disks, a sequence, and clients of each kind.
func stateful(t *testing.T) *release {
	r := nodes(t, "flaked", "StatefulSet", "allowOpen=true")
	r.kubectl(t, "exec", "flaked-0", "--", "/usr/local/bin/flaked", "seq", "create", numbers)
	r.ask()
	return r
}

// ask starts clients of each kind.
func (r *release) ask() {
	r.clients = newClients(r.site)
	r.clients.through(r.name + ".ids.svc.cluster.local:7609")
	r.clients.knowing("Go client", client.Config{Addrs: r.addresses()}, numbers)
}

// addresses returns those of the nodes.
func (r *release) addresses() (all []string) {
	for i := range 3 {
		all = append(all, fmt.Sprintf("%s-%d.%s-nodes.ids.svc.cluster.local:7609", r.name, i, r.name))
	}
	return all
}

// workers returns the nodes' workers.
func (r *release) workers(t testing.TB) (all []int) {
	t.Helper()
	for _, address := range r.addresses() {
		n := &harness.Node{Site: r.site, Name: address, Listen: address}
		var id harness.Identity
		if !harness.Within(time.Minute, func() (ok bool) {
			var err error
			id, err = n.TryIdentity()
			return err == nil && id.Worker >= 0
		}) {
			t.Fatalf("%s says no worker", address)
		}
		all = append(all, id.Worker)
	}
	return all
}

// same fails the test unless all nodes have the workers that they had before.
func (r *release) same(t testing.TB, before []int) {
	t.Helper()
	if now := r.workers(t); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("the nodes have the workers %v, before they had %v", now, before)
	}
}

// TestStatefulSet plays what happens to one node, upgrades, and what happens to machines and disks.
func TestStatefulSet(t *testing.T) {
	r := stateful(t)
	workers := r.workers(t)
	for _, row := range []struct {
		name  string
		event func(*testing.T, pod)
	}{
		{"a pod deleted", func(t *testing.T, _ pod) { r.kubectl(t, "delete", "pod", "flaked-1") }},
		{"a pod deleted without grace", func(t *testing.T, _ pod) {
			r.kubectl(t, "delete", "pod", "flaked-1", "--force", "--grace-period=0")
		}},
		{"SIGKILL", func(t *testing.T, p pod) { p.signal(t, syscall.SIGKILL) }},
		{"SIGSTOP", func(t *testing.T, p pod) { p.signal(t, syscall.SIGSTOP) }},
	} {
		r.play(t, row.name, func(t *testing.T) string {
			before, began := r.pods(t)["flaked-1"], time.Now()
			row.event(t, before)
			took := r.again(t, began, "flaked-1", before)
			r.same(t, workers)
			return "ready after " + seconds(took)
		})
	}
	for _, value := range []string{"flags.log-level=debug", "image.tag=two"} {
		r.play(t, "helm upgrade --set "+value, func(t *testing.T) string {
			seen := r.upgraded(t, value)
			r.same(t, workers)
			return seen
		})
	}
	r.play(t, "scaled to 5 and to 3", r.scaled)
	r.play(t, "two machines drained", r.drained)
	r.play(t, "two pods on one volume", func(t *testing.T) string { return r.twins(t, workers) })
	r.play(t, "a kubelet stops for a minute", func(t *testing.T) string {
		node := r.pods(t)["flaked-1"].node
		kubelet := member(t, "kubelet-"+node)
		must(t, syscall.Kill(kubelet, syscall.SIGSTOP))
		harness.Pass(t.Context(), time.Minute)
		began := time.Now()
		must(t, syscall.Kill(kubelet, syscall.SIGCONT))
		run(t, "kubectl", "wait", "--for=condition=Ready", "node/"+node, "--timeout=2m")
		took := r.settled(t, began, "the kubelet is back")
		r.same(t, workers)
		return "ready after " + seconds(took)
	})
	r.play(t, "ZooKeeper's pods replaced", func(t *testing.T) string {
		seen := r.replaced(t)
		r.same(t, workers)
		return seen
	})
	r.play(t, "an upgrade that cannot become healthy", func(t *testing.T) string { return r.unhealthy(t, workers) })
	r.play(t, "uninstalled and installed with the same volumes", func(t *testing.T) string { return r.reinstalled(t, workers) })
	r.play(t, "a machine gone for good", func(t *testing.T) string { return r.gone(t, workers) })
}

// kubectl runs kubectl in the namespace of the release.
func (r *release) kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return run(t, append([]string{"kubectl", "--namespace", ids}, args...)...)
}

// connected waits until ZooKeeper shows all nodes live.
func (r *release) connected(t testing.TB) {
	t.Helper()
	if !harness.Within(3*time.Minute, func() bool { return r.held("live") == r.replicas }) {
		t.Fatalf("%d of %d nodes are live", r.held("live"), r.replicas)
	}
}

// status returns what `flaked status` prints in a pod, also if something is wrong.
func (r *release) status(flags ...string) string {
	text, _ := try(append([]string{"kubectl", "--namespace", ids, "exec", names(r.pods(r.t))[0], "-c", "flaked", "--",
		"/usr/local/bin/flaked", "status"}, flags...)...)
	return text
}

// held returns the number of workers in one of these states.
func (r *release) held(states ...string) (n int) {
	var status struct{ Workers []struct{ State string } }
	if json.Unmarshal([]byte(r.status("-o", "json")), &status) != nil {
		return -1
	}
	for _, w := range status.Workers {
		if slices.Contains(states, w.State) {
			n++
		}
	}
	return n
}

// scaled adds two nodes and takes them away.
func (r *release) scaled(t *testing.T) string {
	began := time.Now()
	r.replicas = 5
	r.upgrade(t, "replicas=5")
	up := r.settled(t, began, "scaled up")
	began = time.Now()
	r.replicas = 3
	r.upgrade(t, "replicas=3")
	return fmt.Sprintf("five ready after %s, three after %s", seconds(up), seconds(r.settled(t, began, "scaled down")))
}

// drained drains a machine. Its pod waits for its disk, so the budget forbids the drain of the next machine.
func (r *release) drained(t *testing.T) string {
	drain := func(node, limit string) error {
		_, err := try("kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector", r.label, "--timeout", limit)
		return err
	}
	all := r.pods(t)
	first, second := all["flaked-0"].node, all["flaked-1"].node
	if first == second {
		t.Fatalf("two nodes on the machine %s", first)
	}
	began := time.Now()
	must(t, drain(first, "2m"))
	took := time.Since(began)
	if err := drain(second, "20s"); err == nil {
		t.Error("a second machine was drained, against the budget")
	}
	began = time.Now()
	run(t, "kubectl", "uncordon", first, second)
	return fmt.Sprintf("drained after %s, the second not while the first was; ready %s after uncordon", seconds(took),
		seconds(r.settled(t, began, "uncordoned")))
}

// twins starts a second pod on the volume of flaked-0, and deletes flaked-0 without grace, so that both want the
// volume.
func (r *release) twins(t *testing.T, workers []int) string {
	var twin map[string]any
	must(t, json.Unmarshal([]byte(r.kubectl(t, "get", "pod", "flaked-0", "-o", "json")), &twin))
	twin["metadata"], twin["status"] = map[string]any{"name": "twin", "namespace": ids, "labels": map[string]any{"twin": "yes"}}, nil
	text, err := json.Marshal(twin)
	must(t, err)
	_, err = fed(string(text), "kubectl", "apply", "-f", "-")
	must(t, err)
	t.Cleanup(func() {
		_, _ = try("kubectl", "--namespace", ids, "delete", "pod", "twin", "--force", "--grace-period=0")
	})
	var said string
	if !harness.Within(2*time.Minute, func() bool {
		said, _ = try("kubectl", "--namespace", ids, "logs", "twin", "--previous")
		return said != ""
	}) {
		t.Fatalf("the second pod runs: %+v", pods(t, ids, "twin=yes"))
	}
	if pods(t, ids, "twin=yes")["twin"].ready {
		t.Error("both pods are ready")
	}
	before, began := r.pods(t)["flaked-0"], time.Now()
	r.kubectl(t, "delete", "pod", "flaked-0", "--force", "--grace-period=0")
	harness.Pass(t.Context(), 20*time.Second)
	r.kubectl(t, "delete", "pod", "twin", "--force", "--grace-period=0")
	took := r.again(t, began, "flaked-0", before)
	r.same(t, workers)
	return fmt.Sprintf("ready after %s; the second said: %s", seconds(took), harness.LastLines(said, 1))
}

// unhealthy upgrades to an image that does not exist, and rolls back.
func (r *release) unhealthy(t *testing.T, workers []int) string {
	good := r.values
	r.values = append(slices.Clone(good), "image.tag=none")
	if err := r.helm("upgrade", "--wait", "--timeout", "1m"); err == nil {
		t.Error("the upgrade ended well")
	}
	r.values = good
	all := r.pods(t)
	maps.DeleteFunc(all, func(_ string, p pod) bool { return p.ready })
	if len(all) != 1 || r.replicas != 3 {
		t.Fatalf("%d of %d nodes are not ready: %+v", len(all), r.replicas, all)
	}
	began := time.Now()
	run(t, "helm", "rollback", r.name, "--namespace", ids)
	took := r.settled(t, began, "rolled back")
	r.same(t, workers)
	return fmt.Sprintf("one node waited for its image, %s; all ready %s after the rollback", slices.Collect(maps.Values(all))[0].waits, seconds(took))
}

// reinstalled uninstalls the release, and installs it with the claims that it has left.
func (r *release) reinstalled(t *testing.T, workers []int) string {
	r.clients.end()
	run(t, "helm", "uninstall", r.name, "--namespace", ids, "--wait", "--timeout", "3m")
	r.await(t, time.Now(), "without pods", 2*time.Minute, func(all map[string]pod) bool { return len(all) == 0 })
	r.values = append(r.values, "cluster.create=false")
	began := time.Now()
	must(t, r.helm("install"))
	took := r.settled(t, began, "installed again")
	r.same(t, workers)
	r.ask()
	return "ready after " + seconds(took)
}

// gone ends a machine with all that runs on it, and does what docs/deploy.md says. Then an empty machine takes its
// place.
func (r *release) gone(t *testing.T, workers []int) string {
	node := r.pods(t)["flaked-1"].node
	run(t, "ip", "link", "set", node, "down")
	for _, name := range []string{"kubelet-", "containerd-", "proxy-"} {
		must(t, syscall.Kill(member(t, name+node), syscall.SIGKILL))
	}
	for _, id := range processes("/sys/fs/cgroup/pids/flaked-"+node, "") {
		_ = syscall.Kill(id, syscall.SIGKILL) // it may have ended with its parent
	}
	began := time.Now()
	run(t, "kubectl", "delete", "node", node)
	r.await(t, began, "flaked-1 waits for its disk", 5*time.Minute, func(all map[string]pod) bool {
		p, ok := all["flaked-1"]
		return ok && p.node == "" && !p.leaving
	})
	waited := time.Since(began)
	r.kubectl(t, "delete", "pvc", "state-flaked-1", "--wait=false")
	r.kubectl(t, "delete", "pod", "flaked-1")
	took := r.settled(t, began, "on another machine")
	now := r.workers(t)
	if now[0] != workers[0] || now[2] != workers[2] || now[1] == workers[1] {
		t.Errorf("the nodes have the workers %v, before they had %v", now, workers)
	}
	run(t, "scripts/cluster.sh", "--node", node)
	return fmt.Sprintf("its pod waited for the disk after %s; ready after %s, with another worker", seconds(waited), seconds(took))
}
