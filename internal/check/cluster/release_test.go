//go:build linux

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
)

// release is an installed chart, with the clients that ask it.
type release struct {
	t        testing.TB
	site     *harness.Site
	name     string
	chart    string
	label    string // of its pods
	replicas int
	values   []string // --set
	clients  *clients
}

// nodes installs the chart of nodes, and waits until all are ready.
func nodes(t testing.TB, name, kind string, values ...string) *release {
	t.Helper()
	return install(t, name, "deploy/helm/flaked", "app.kubernetes.io/instance="+name,
		append([]string{"kind=" + kind, "image.repository=localhost/flaked", "image.tag=one",
			"zookeeper.servers=" + escaped(servers), "cluster.name=" + name}, values...))
}

// escaped returns a value for --set.
func escaped(value string) string { return strings.ReplaceAll(value, ",", `\,`) }

// install installs a chart in the namespace ids, and waits until all three pods are ready.
func install(t testing.TB, name, chart, label string, values []string) *release {
	t.Helper()
	prepared(t)
	r := &release{
		t: t, site: harness.NewSite(t, strings.ReplaceAll(servers, "default", "default.svc.cluster.local")),
		name: name, chart: chart, label: label, replicas: 3, values: values,
	}
	t.Cleanup(r.remove)
	began := time.Now()
	must(t, r.helm("install"))
	t.Logf("SEEN %s installed: ready after %s", name, seconds(r.settled(t, began, "installed")))
	return r
}

// helm installs or upgrades the release. It returns at once unless there are flags that say otherwise.
func (r *release) helm(verb string, flags ...string) error {
	args := []string{"helm", verb, r.name, r.chart, "--namespace", ids}
	for _, v := range r.values {
		args = append(args, "--set", v)
	}
	_, err := try(append(args, flags...)...)
	return err
}

// upgrade changes a value of the release, and waits until the rollout has ended.
func (r *release) upgrade(t testing.TB, value string) {
	t.Helper()
	r.values = append(r.values, value)
	must(t, r.helm("upgrade", "--wait", "--timeout", "9m"))
}

// upgraded upgrades the release, and waits until all pods have other containers and are ready.
func (r *release) upgraded(t testing.TB, value string) string {
	t.Helper()
	before, began := r.pods(t), time.Now()
	r.upgrade(t, value)
	took := r.await(t, began, "upgraded, and all ready", 8*time.Minute, func(all map[string]pod) bool {
		for name, p := range before {
			if all[name].container == p.container {
				return false
			}
		}
		return r.whole(all)
	})
	return "all replaced after " + seconds(took)
}

// remove uninstalls the release at the end of a test, with its disks. A failed test shows what there was.
func (r *release) remove() {
	if r.t.Failed() {
		for _, args := range [][]string{{"get", "pods", "-o", "wide"}, {"describe", "pods", "-l", r.label},
			{"logs", "-l", r.label, "--tail", "40", "--prefix", "--all-containers"}} {
			out, err := try(append([]string{"kubectl", "--namespace", ids}, args...)...)
			r.t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, harness.LastLines(out, 200))
		}
	}
	_, _ = try("helm", "uninstall", r.name, "--namespace", ids, "--wait", "--timeout", "3m")
	_, _ = try("kubectl", "--namespace", ids, "delete", "pvc", "-l", r.label, "--wait=false")
}

func (r *release) pods(t testing.TB) map[string]pod { return pods(t, ids, r.label) }

// await waits until the pods are as they should be, and returns how long that took.
func (r *release) await(t testing.TB, began time.Time, what string, limit time.Duration, ok func(map[string]pod) bool) time.Duration {
	t.Helper()
	for time.Since(began) < limit {
		if ok(r.pods(t)) {
			return time.Since(began)
		}
		harness.Pass(t.Context(), 200*time.Millisecond)
	}
	t.Fatalf("after %s not %s: %+v", limit, what, r.pods(t))
	return 0
}

// settled waits until all pods are ready.
func (r *release) settled(t testing.TB, began time.Time, what string) time.Duration {
	t.Helper()
	return r.await(t, began, what+", and all ready", 8*time.Minute, r.whole)
}

func (r *release) whole(all map[string]pod) bool {
	ready := 0
	for _, p := range all {
		if p.ready && !p.leaving {
			ready++
		}
	}
	return ready == r.replicas && len(all) == r.replicas
}

// again waits until a pod has another container, which is ready, and all others are ready.
func (r *release) again(t testing.TB, began time.Time, name string, before pod) time.Duration {
	t.Helper()
	return r.await(t, began, name+" is back", 5*time.Minute, func(all map[string]pod) bool {
		return all[name].container != before.container && r.whole(all)
	})
}

// play runs a scenario under the clients. event returns when the release is whole again, and what was seen.
func (r *release) play(t *testing.T, name string, event func(t *testing.T) string) {
	t.Run(name, func(t *testing.T) {
		r.clients.seen()
		began := time.Now()
		seen := event(t)
		harness.Pass(t.Context(), 3*time.Second)
		text, refused := r.clients.seen()
		t.Logf("SEEN %s: %s; %.0f s\n    %s", name, seen, time.Since(began).Seconds(), text)
		if refused > 0 {
			t.Errorf("%d IDs or values were refused", refused)
		}
	})
}

// names returns the pods' names in order.
func names(all map[string]pod) []string { return slices.Sorted(maps.Keys(all)) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
