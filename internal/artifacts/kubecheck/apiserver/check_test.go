package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const dir = "../../../../deploy/kubernetes"

// kustomizations maps each directory in dir to the number of its objects.
var kustomizations = map[string]int{"config": 1, "cluster-init": 2, "sidecar": 2, "shared": 5, "stateful": 6}

func TestShippedFilesPass(t *testing.T) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(kustomizations) {
		t.Errorf("%d directories in %s, %d are known here", len(entries), dir, len(kustomizations))
	}
	for name, want := range kustomizations {
		n, err := check(filesys.MakeFsOnDisk(), filepath.Join(dir, name))
		if n != want || err != nil {
			t.Errorf("%s: %d objects, want %d; %v", name, n, want, err)
		}
	}
}

// Each row makes one mistake in a copy of the real files in memory.
func TestMistakesAreFound(t *testing.T) {
	for name, row := range map[string]struct{ file, old, new, want string }{
		"a field misspelt":           {"sidecar/app.yaml", "restartPolicy: Always", "restartpolicy: Always", `unknown field "spec.template.spec.initContainers[0].restartpolicy"`},
		"a field twice":              {"shared/deployment.yaml", "  replicas: 3\n", "  replicas: 3\n  replicas: 3\n", "already defined"},
		"a kind misspelt":            {"shared/deployment.yaml", "kind: Deployment", "kind: Deploiment", "no kind"},
		"a list for a map":           {"config/config.yaml", "  FLAKED_CLUSTER: default", "  FLAKED_CLUSTER: [default]", "cannot unmarshal array"},
		"a number for a text":        {"shared/deployment.yaml", "value: /etc/flaked/tokens", "value: 3", "cannot unmarshal number"},
		"a file that is not there":   {"stateful/kustomization.yaml", "- network.yaml", "- net.yaml", "net.yaml"},
		"a probe of no sidecar":      {"sidecar/app.yaml", "          restartPolicy: Always\n", "", "may not be set for init containers"},
		"labels of others":           {"shared/deployment.yaml", "    metadata:\n      labels:\n        app.kubernetes.io/name: flaked", "    metadata:\n      labels:\n        app.kubernetes.io/name: fl", "`selector` does not match template `labels`"},
		"a volume not declared":      {"sidecar/app.yaml", "        - name: flaked-state\n          emptyDir", "        - name: flakedstate\n          emptyDir", `Not found: "flaked-state"`},
		"a claim not declared":       {"stateful/statefulset.yaml", "    - metadata:\n        name: state", "    - metadata:\n        name: states", `Not found: "state"`},
		"a port name too long":       {"sidecar/app.yaml", "name: flaked-admin", "name: flaked-admin-port", "must be no more than 15 characters"},
		"two ports in one pod":       {"shared/deployment.yaml", "containerPort: 7610", "containerPort: 7609", "duplicate port definition"},
		"an impossible strategy":     {"shared/deployment.yaml", "maxSurge: 1", "maxSurge: 0", "may not be 0 when `maxSurge` is 0"},
		"no such time":               {"shared/deployment.yaml", "timeoutSeconds: 5\n", "timeoutSeconds: -5\n", "timeoutSeconds"},
		"preStop beyond the grace":   {"shared/deployment.yaml", "seconds: 5\n", "seconds: 31\n", "less than terminationGracePeriodSeconds"},
		"a size misspelt":            {"stateful/statefulset.yaml", "storage: 64Mi", "storage: 64MB", "quantities must match"},
		"no such policy":             {"shared/service.yaml", "AlwaysAllow", "Always", "unhealthyPodEvictionPolicy"},
		"no such type of policy":     {"shared/network.yaml", "[Ingress]", "[ingress]", "policyTypes"},
		"root":                       {"shared/deployment.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "restricted level of Pod Security"},
		"user 0":                     {"sidecar/app.yaml", "runAsUser: 65532", "runAsUser: 0", "restricted level of Pod Security"},
		"capabilities":               {"stateful/statefulset.yaml", "drop: [ALL]", "drop: [CHOWN]", "restricted level of Pod Security"},
		"no seccomp":                 {"cluster-init/job.yaml", "type: RuntimeDefault", "type: Unconfined", "restricted level of Pod Security"},
		"a Job that begins for good": {"cluster-init/job.yaml", "restartPolicy: Never", "restartPolicy: Always", "restartPolicy"},
		"a namespace":                {"shared/service.yaml", "metadata:\n  name: flaked\n", "metadata:\n  name: flaked\n  namespace: ids\n", "names a namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := inMemory(t, "/", func(file, text string) string {
				if file != row.file {
					return text
				}
				broken := strings.Replace(text, row.old, row.new, 1)
				if broken == text {
					t.Fatalf("%s holds no %q", file, row.old)
				}
				return broken
			})
			if _, err := check(fs, filepath.Join("/", filepath.Dir(row.file))); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("found %v, want %q", err, row.want)
			}
		})
	}
}

// inMemory returns a file system with a copy of the shipped files below to. Each file has
// the text that change returns for it.
func inMemory(t *testing.T, to string, change func(file, text string) string) filesys.FileSystem {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return fs.WriteFile(filepath.Join(to, file), []byte(change(file, string(data))))
	})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// The kustomization in docs/deploy.md sets the image, ZooKeeper's addresses and the
// cluster.
func TestKustomizationInTheDocumentWorks(t *testing.T) {
	document, err := os.ReadFile("../../../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(document), "    # kustomization.yaml\n")
	if !found {
		t.Fatal("there is none")
	}
	text, _, _ = strings.Cut(text, "\n\n")
	text = strings.ReplaceAll("\n"+text, "\n       ", "\n") // the indentation of a block in a list
	for _, name := range []string{"shared", "sidecar", "stateful", "cluster-init"} {
		fs := inMemory(t, "/flaked/deploy/kubernetes", func(_, text string) string { return text })
		own := strings.Replace(text, "kubernetes/shared", "kubernetes/"+name, 1)
		if err := fs.WriteFile("/own/kustomization.yaml", []byte(own)); err != nil {
			t.Fatal(err)
		}
		if n, err := check(fs, "/own"); n != kustomizations[name] || err != nil {
			t.Errorf("%s: %d objects, want %d; %v", name, n, kustomizations[name], err)
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/own")
		if err != nil {
			t.Fatal(err)
		}
		all, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"image: registry.example.com/flaked:1.0\n", "FLAKED_ZK: zk1.example.com:2181,", "FLAKED_CLUSTER: orders\n"} {
			if !strings.Contains(string(all), want) {
				t.Errorf("%s: no %q in\n%s", name, want, all)
			}
		}
	}
}
