//go:build linux

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
)

const because = "because ZooKeeper lost data"

// TestOlderCopy restores ZooKeeper to a backup, as docs/operate.md says, and nodes have done more since.
func TestOlderCopy(t *testing.T) {
	r := nodes(t, "flaked-copy", "StatefulSet", "allowOpen=true")
	r.kubectl(t, "exec", "flaked-copy-0", "--", "/usr/local/bin/flaked", "seq", "create", numbers)
	r.ask()
	workers := r.workers(t)
	r.play(t, "ZooKeeper restored to an older copy", func(t *testing.T) string {
		backup := t.TempDir()
		from := disk(t, "data-zk-0")
		run(t, "sh", "-c", fmt.Sprintf("cp -p %s/data/version-2/* %s && cp -p %[1]s/datalog/version-2/log.* %[2]s", from, backup))
		harness.Pass(t.Context(), time.Minute)
		began := time.Now()
		run(t, "kubectl", "scale", "statefulset/zk", "--replicas=0")
		run(t, "kubectl", "wait", "--for=delete", "pods", "-l", "app=zk", "--timeout=2m")
		for _, claim := range []string{"data-zk-0", "data-zk-1", "data-zk-2"} {
			run(t, "sh", "-c", fmt.Sprintf(`cd %s
rm -r data/version-2/* datalog/version-2/*
cp -p %s/snapshot.* %[2]s/*Epoch data/version-2 && cp -p %[2]s/log.* datalog/version-2`, disk(t, claim), backup))
		}
		run(t, "kubectl", "scale", "statefulset/zk", "--replicas=3")
		run(t, "kubectl", "rollout", "status", "statefulset/zk", "--timeout=3m")
		served := time.Since(began)
		// The copy, too, says that the nodes are live.
		if !harness.Within(time.Minute, func() bool { return strings.Contains(r.status(), because) }) {
			t.Fatalf("no node has noticed:\n%s", r.status())
		}
		r.connected(t)
		r.same(t, workers)
		return fmt.Sprintf("ZooKeeper back after %s, all nodes live after %s", seconds(served), seconds(time.Since(began)))
	})
	r.play(t, "older copy, a pod deleted", func(t *testing.T) string {
		before, began := r.pods(t)["flaked-copy-1"], time.Now()
		r.kubectl(t, "delete", "pod", "flaked-copy-1")
		took := r.again(t, began, "flaked-copy-1", before)
		r.same(t, workers)
		return "ready after " + seconds(took)
	})
	r.play(t, "older copy, scaled to 4", func(t *testing.T) string {
		r.values = append(r.values, "replicas=4")
		must(t, r.helm("upgrade"))
		said := ""
		if !harness.Within(2*time.Minute, func() bool {
			said, _ = try("kubectl", "--namespace", ids, "logs", "flaked-copy-3")
			return strings.Contains(said, because)
		}) {
			t.Fatalf("the new node does not say %q:\n%s", because, said)
		}
		if r.pods(t)["flaked-copy-3"].ready {
			t.Error("the new node has a worker")
		}
		began := time.Now()
		r.upgrade(t, "replicas=3")
		return fmt.Sprintf("the new node waits %s; three ready after %s", because, seconds(r.settled(t, began, "scaled down")))
	})
}

// disk returns the directory of a claim.
func disk(t testing.TB, claim string) string {
	t.Helper()
	volume := run(t, "kubectl", "get", "pvc", claim, "-o", "jsonpath={.spec.volumeName}")
	return run(t, "kubectl", "get", "pv", volume, "-o", "jsonpath={.spec.local.path}")
}
