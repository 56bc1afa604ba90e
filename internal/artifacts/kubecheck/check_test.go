package kubecheck

import (
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

const shippedDir = "../../../deploy/kubernetes"

var kustomizations = []string{"config", "cluster-init", "sidecar", "shared", "stateful"}

func TestShippedFilesPass(t *testing.T) {
	for _, dir := range kustomizations {
		if err := check(os.DirFS(shippedDir), dir); err != nil {
			t.Errorf("%s:\n%v", dir, err)
		}
	}
}

// Each row makes one mistake in the real files.
func TestMistakesAreFound(t *testing.T) {
	for name, row := range map[string]struct{ file, old, new, want string }{
		"a service of nobody":         {"shared/service.yaml", "  selector:\n    app.kubernetes.io/name: flaked", "  selector:\n    app.kubernetes.io/name: flake", "selects no pods"},
		"a service of everybody":      {"shared/service.yaml", "  selector:\n    app.kubernetes.io/name: flaked\n", "", "selects no pods"},
		"a budget of nobody":          {"stateful/service.yaml", "    matchLabels:\n      app.kubernetes.io/name: flaked", "    matchLabels:\n      app.kubernetes.io/name: flake", "selects no pods"},
		"a policy of nobody":          {"shared/network.yaml", "  podSelector:\n    matchLabels:\n      app.kubernetes.io/name: flaked", "  podSelector:\n    matchLabels:\n      app.kubernetes.io/name: fl", "selects no pods"},
		"spread among others":         {"stateful/statefulset.yaml", "              app.kubernetes.io/name: flaked", "              app.kubernetes.io/name: fl", "count other pods"},
		"a target misspelt":           {"shared/service.yaml", "targetPort: ids", "targetPort: id", `has a port "id"`},
		"a port misspelt":             {"shared/network.yaml", "port: admin", "port: adm", `has a port "adm"`},
		"a probe's port misspelt":     {"sidecar/app.yaml", "port: http\n", "port: htp\n", "that it has not"},
		"another admin port":          {"sidecar/app.yaml", "containerPort: 7610", "containerPort: 7611", "asks port 7611"},
		"admin on loopback":           {"shared/deployment.yaml", "--admin=0.0.0.0:7610", "--admin=127.0.0.1:7610", "kubelet does not reach"},
		"no admin":                    {"stateful/statefulset.yaml", "            - --admin=0.0.0.0:7610\n", "", "kubelet does not reach"},
		"restarted when not ready":    {"shared/deployment.yaml", "path: /livez", "path: /readyz", "livenessProbe asks"},
		"ready when alive":            {"shared/deployment.yaml", "path: /readyz", "path: /livez", "readinessProbe asks"},
		"a startup that is short":     {"sidecar/app.yaml", "failureThreshold: 600", "failureThreshold: 10", "ends it after 10 s"},
		"a sidecar that blocks":       {"sidecar/app.yaml", "          restartPolicy: Always\n", "", "never start"},
		"a service in the way":        {"sidecar/app.yaml", "      enableServiceLinks: false\n", "", "FLAKED_PORT"},
		"the volume as directory":     {"sidecar/app.yaml", "/var/lib/flaked/node", "/var/lib/flaked", "which is root's"},
		"a directory on no volume":    {"shared/deployment.yaml", "value: /var/lib/flaked/node", "value: /var/lib/flakedd/node", "on no volume"},
		"nothing is given back":       {"sidecar/app.yaml", "            - --release-on-exit\n", "", "--release-on-exit false"},
		"what lasts is given back":    {"stateful/statefulset.yaml", "            - serve\n", "            - serve\n            - --release-on-exit\n", "--release-on-exit true"},
		"opened at every start":       {"stateful/statefulset.yaml", "        fsGroupChangePolicy: OnRootMismatch\n", "", "second start"},
		"a volume of root":            {"stateful/statefulset.yaml", "        fsGroup: 65532\n", "", "belongs to root"},
		"tokens for all":              {"shared/deployment.yaml", "defaultMode: 0440", "defaultMode: 0444", "mode 0444"},
		"tokens for root":             {"shared/deployment.yaml", "        fsGroup: 65532\n", "", "cannot be read"},
		"another Secret":              {"shared/deployment.yaml", "secretName: flaked-tokens", "secretName: tokens", "does not have made"},
		"no tokens":                   {"stateful/statefulset.yaml", "name: FLAKED_TOKEN_FILE", "name: FLAKED_TOKENS", "anybody is let in"},
		"found by nobody":             {"stateful/statefulset.yaml", "FLAKED_ADVERTISE", "FLAKED_ADVERTISED", "nobody finds it"},
		"an unknown field":            {"shared/deployment.yaml", "fieldPath: status.podIP", "fieldPath: status.hostIP", "not known here"},
		"open":                        {"shared/deployment.yaml", "            - serve\n", "            - serve\n            - --allow-open\n", "--allow-open is not"},
		"a cluster each time":         {"shared/deployment.yaml", "            - serve\n", "            - serve\n            - --bootstrap\n", "--bootstrap is not"},
		"killed too soon":             {"sidecar/app.yaml", "terminationGracePeriodSeconds: 45", "terminationGracePeriodSeconds: 10", "may take 15"},
		"killed too soon after sleep": {"shared/deployment.yaml", "terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 19", "may take 20"},
		"the socket elsewhere":        {"sidecar/app.yaml", "--listen=unix:/run/flaked/", "--listen=unix:/run/", "does not see the socket"},
		"a socket that can be taken":  {"sidecar/app.yaml", "              readOnly: true\n", "", "could take the socket away"},
		"a socket of others":          {"sidecar/app.yaml", "supplementalGroups: [65532]", "supplementalGroups: [65533]", "not in the socket's group"},
		"no ConfigMap":                {"sidecar/app.yaml", "                name: flaked\n", "                name: flak\n", `no ConfigMap "flak"`},
		"no ZooKeeper":                {"config/config.yaml", "FLAKED_ZK:", "FLAKED_ZOOKEEPER:", "neither ZooKeeper"},
		"a root to write to":          {"cluster-init/job.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "can be written"},
		"no such headless service":    {"stateful/statefulset.yaml", "serviceName: flaked-nodes", "serviceName: flaked", "no Service"},
		"more of kustomize":           {"shared/kustomization.yaml", "resources:", "namePrefix: x-\nresources:", "namePrefix"},
		"a file that is not there":    {"shared/kustomization.yaml", "- network.yaml", "- net.yaml", "net.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			var of string // a kustomization that has the file
			for _, dir := range kustomizations {
				entries, err := os.ReadDir(path.Join(shippedDir, dir))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					data, err := os.ReadFile(path.Join(shippedDir, dir, e.Name()))
					if err != nil {
						t.Fatal(err)
					}
					files[path.Join(dir, e.Name())] = &fstest.MapFile{Data: data}
				}
			}
			file := files[row.file]
			if file == nil {
				t.Fatalf("there is no %s", row.file)
			}
			broken := strings.Replace(string(file.Data), row.old, row.new, 1)
			if broken == string(file.Data) {
				t.Fatalf("%s holds no %q", row.file, row.old)
			}
			file.Data = []byte(broken)
			if of = path.Dir(row.file); of == "config" {
				of = "shared"
			}
			if err := check(files, of); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("found %v, want %q", err, row.want)
			}
		})
	}
}
