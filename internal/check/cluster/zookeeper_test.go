//go:build linux

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// zookeepers starts three servers, of FLAKED_ZK_CLASSPATH. Java and the shell are those of this machine.
func zookeepers(t testing.TB) {
	t.Helper()
	jars := os.Getenv("FLAKED_ZK_CLASSPATH")
	dir, ok := strings.CutSuffix(jars, "/*")
	if !ok {
		t.Fatalf("FLAKED_ZK_CLASSPATH is %q. Set it as `make cluster` does", jars)
	}
	secret(t, "default", "zookeeper", map[string][]byte{
		"server.pem": slices.Concat(file(t, "zookeeper.key"), file(t, "zookeeper.crt")), "ca.pem": file(t, "ca.crt")})
	run(t, "kubectl", "create", "configmap", "zookeeper", "--from-file=internal/check/deploy/testdata/zookeeper.sh")
	text, err := os.ReadFile("testdata/zookeeper.yaml")
	must(t, err)
	var mounts, volumes strings.Builder
	java, _ := filepath.Glob("/etc/java*")
	for i, dir := range append(java, dir, "/usr", "/bin", "/lib", "/lib64", "/etc/alternatives") {
		fmt.Fprintf(&mounts, "            - {name: m%d, mountPath: %s, readOnly: true}\n", i, dir)
		fmt.Fprintf(&volumes, "        - {name: m%d, hostPath: {path: %s}}\n", i, dir)
	}
	manifest := strings.NewReplacer("MOUNTS\n", mounts.String(), "VOLUMES\n", volumes.String(), "JARS", jars).Replace(string(text))
	_, err = fed(manifest, "kubectl", "apply", "-f", "-")
	must(t, err)
	run(t, "kubectl", "rollout", "status", "statefulset/zk", "--timeout=180s")
}

// file returns a file of the cluster.
func file(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(files, name))
	must(t, err)
	return text
}

// secret makes or replaces a Secret.
func secret(t testing.TB, namespace, name string, data map[string][]byte) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "data": data,
		"metadata": map[string]any{"name": name, "namespace": namespace}})
	must(t, err)
	_, err = fed(string(text), "kubectl", "apply", "-f", "-")
	must(t, err)
}

// replaced deletes all pods of ZooKeeper at once, and waits until ZooKeeper shows all nodes live. The new pods must have
// other addresses.
func (r *release) replaced(t *testing.T) string {
	t.Helper()
	addresses := func() []string {
		return strings.Fields(run(t, "kubectl", "get", "pods", "-l", "app=zk", "-o", "jsonpath={.items[*].status.podIP}"))
	}
	before, began := addresses(), time.Now()
	run(t, "kubectl", "delete", "pods", "-l", "app=zk")
	run(t, "kubectl", "rollout", "status", "statefulset/zk", "--timeout=3m")
	served := time.Since(began)
	for _, address := range addresses() {
		if slices.Contains(before, address) {
			t.Errorf("ZooKeeper still has the address %s", address)
		}
	}
	r.connected(t)
	return fmt.Sprintf("ZooKeeper back after %s, all nodes live after %s", seconds(served), seconds(time.Since(began)))
}
