package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// fields is a mapping of a manifest.
type fields = map[string]any

// manifests returns the objects that a chart renders, with helm of the module internal/check/kubernetes.
func manifests(t testing.TB, chart string, values ...string) []fields {
	t.Helper()
	helm := do(t, "env", "GOWORK=off", "CGO_ENABLED=0", "go", "-C", "internal/check/kubernetes", "tool", "-n", "helm")
	source := do(t, strings.TrimSpace(helm), "template", "flaked", chart, "--kube-version", "1.36",
		"--set", strings.Join(values, ","))
	var objects []fields
	for documents := yaml.NewDecoder(strings.NewReader(source)); ; {
		var object fields
		if err := documents.Decode(&object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatalf("%s: %v", chart, err)
		}
		objects = append(objects, object)
	}
}

// A site is a network with a ZooKeeper, and the Secret that pods of it refer to.
type site struct {
	t       testing.TB
	chart   []string // the chart of nodes, and values of it
	network string
	zk      string
	secret  fields
}

func newSite(t testing.TB) *site {
	t.Helper()
	chart := []string{"deploy/helm/flaked", "image.tag=dev", "image.repository=localhost/flaked"}
	s := &site{t: t, chart: chart, network: unique(t, "kube"), zk: unique(t, "zk"), secret: fields{
		"apiVersion": "v1", "kind": "Secret", "metadata": fields{"name": "flaked-tokens"},
		"data": fields{"tokens": kubeToken}, // podman does not decode the base64
	}}
	podman(t, "network", "create", s.network)
	t.Cleanup(func() { _, _ = try(context.Background(), ".", "podman", "network", "rm", "--force", s.network) })
	removed(t, s.zk)
	podman(t, "run", "--detach", "--name", s.zk, "--network", s.network, "docker.io/library/zookeeper:3.9")
	// Kubernetes runs a Job again that has failed, podman does not.
	until(t, 90*time.Second, "ZooKeeper serves", func() error {
		_, err := try(t.Context(), ".", "podman", "exec", s.zk, "bash", "-c",
			"exec 3<>/dev/tcp/127.0.0.1/2181; echo srvr >&3; grep Mode: <&3")
		return err
	})
	// podman keeps a secret, and a volume with its files, under the secret's name.
	forget := func() {
		_, _ = try(context.Background(), ".", "podman", "secret", "rm", "flaked-tokens")
		_, _ = try(context.Background(), ".", "podman", "volume", "rm", "--force", "flaked-tokens")
	}
	forget()
	t.Cleanup(forget)
	return s
}

// kubeToken is the token that the nodes of the chart require.
const kubeToken = "0123456789abcdef0123456789abcdef"

// authenticate is the line that sends kubeToken.
const authenticate = "AUTH " + kubeToken

// nodes renders the chart.
func (s *site) nodes(kind string) []fields {
	return manifests(s.t, s.chart[0], append([]string{"kind=" + kind, "tokensSecret=flaked-tokens",
		"zookeeper.servers=" + s.zk + ":2181"}, s.chart[1:]...)...)
}

// sidecar renders the chart of examples/webapp.
func (s *site) sidecar() []fields {
	s.t.Helper()
	chart := s.t.TempDir()
	do(s.t, "cp", "-r", "examples/webapp/chart/.", chart)
	do(s.t, "mkdir", chart+"/charts")
	do(s.t, "cp", "-rL", "deploy/helm/flaked", chart+"/charts")
	return manifests(s.t, chart, "image=localhost/webapp:dev", "flaked.image.tag=dev",
		"flaked.image.repository=localhost/flaked", "flaked.zookeeper.servers="+s.zk+":2181")
}

// pod returns the pod of a workload. adapt changes what podman 4.3.1 cannot run.
func (s *site) pod(objects []fields, kind, name string) fields {
	s.t.Helper()
	for _, object := range objects {
		if object["kind"] != kind {
			continue
		}
		spec := object["spec"].(fields)
		template := spec["template"].(fields)
		metadata := template["metadata"].(fields)
		metadata["name"] = name
		pod := template["spec"].(fields)
		for _, claim := range list(spec["volumeClaimTemplates"]) {
			pod["volumes"] = append(list(pod["volumes"]), fields{
				"name":                  claim.(fields)["metadata"].(fields)["name"],
				"persistentVolumeClaim": fields{"claimName": name + "-claim"},
			})
		}
		adapt(name, pod)
		return fields{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}
	}
	s.t.Fatalf("the chart has no %s", kind)
	return nil
}

func list(value any) []any { items, _ := value.([]any); return items }

func adapt(name string, pod fields) {
	// It does not know restartPolicy of init containers, so a sidecar is one of the containers.
	pod["containers"] = append(list(pod["initContainers"]), list(pod["containers"])...)
	delete(pod, "initContainers")
	security, _ := pod["securityContext"].(fields)
	for _, c := range pod["containers"].([]any) {
		c := c.(fields)
		delete(c, "restartPolicy")
		delete(c, "ports") // it publishes them on the host
		var env []any
		for _, e := range list(c["env"]) {
			if _, ok := e.(fields)["valueFrom"]; !ok { // it does not know status.podIP
				env = append(env, e)
			}
		}
		c["env"] = env
		for _, m := range list(c["volumeMounts"]) {
			m := m.(fields)
			m["name"] = name + "-" + m["name"].(string)
		}
		// It ignores supplementalGroups.
		if groups := list(security["supplementalGroups"]); len(groups) > 0 {
			c["securityContext"].(fields)["runAsGroup"] = groups[0]
		}
		// Its probes need timers of systemd on the host and curl in the container.
		for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe", "lifecycle"} {
			delete(c, probe)
		}
	}
	// Pods that name a volume alike share it.
	for _, v := range list(pod["volumes"]) {
		v.(fields)["name"] = name + "-" + v.(fields)["name"].(string)
		if secret, ok := v.(fields)["secret"].(fields); ok {
			secret["optional"] = false // it crashes without the field
		}
	}
}

// play creates a pod, gives its volumes the mode that a kubelet gives an emptyDir, and starts it.
func (s *site) play(t testing.TB, pod fields) *kubePod {
	t.Helper()
	var all bytes.Buffer
	documents := yaml.NewEncoder(&all)
	for _, object := range []fields{s.secret, pod} {
		if err := documents.Encode(object); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, all.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	name := pod["metadata"].(fields)["name"].(string)
	p := &kubePod{t, name}
	// podman may fail after it has made a part of the pod.
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("podman", "pod", "logs", "--tail", "30", name).CombinedOutput()
			t.Logf("log of %s:\n%s", name, out)
		}
		p.remove()
		for _, v := range list(pod["spec"].(fields)["volumes"]) {
			if v := v.(fields); v["emptyDir"] != nil {
				_, _ = try(context.Background(), ".", "podman", "volume", "rm", "--force", v["name"].(string))
			}
		}
	})
	do(t, "podman", "kube", "play", "--start=false", "--network", s.network, file)
	for _, c := range strings.Fields(podman(t, "pod", "inspect", "--format", "{{range .Containers}}{{.Name}} {{end}}",
		name)) {
		for _, directory := range strings.Fields(podman(t, "inspect", "--format",
			`{{range .Mounts}}{{if eq .Type "volume"}}{{.Source}} {{end}}{{end}}`, c)) {
			if !strings.Contains(directory, "flaked-tokens") {
				do(t, "chmod", "777", directory)
			}
		}
	}
	podman(t, "pod", "start", name)
	return p
}

// A kubePod is a pod that runs.
type kubePod struct {
	t    testing.TB
	name string
}

// remove removes the pod. The test's context has ended when cleanup functions call it.
func (p *kubePod) remove() {
	_, _ = try(context.Background(), ".", "podman", "pod", "rm", "--force", "--time", "20", p.name)
}

// in returns the name of one of the pod's containers.
func (p *kubePod) in(container string) string { return p.name + "-" + container }

// address returns the pod's address on its network.
func (p *kubePod) address(port int) string {
	p.t.Helper()
	infra := strings.TrimSpace(podman(p.t, "pod", "inspect", "--format", "{{.InfraContainerID}}", p.name))
	ip := strings.TrimSpace(podman(p.t, "inspect", "--format",
		"{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", infra))
	return fmt.Sprintf("%s:%d", ip, port)
}

// probe asks for a path of the admin port, as a kubelet does.
func (p *kubePod) probe(path string) {
	p.t.Helper()
	until(p.t, 60*time.Second, path+" of "+p.name, func() error {
		response, err := client.Get("http://" + p.address(7610) + path)
		return has(http.StatusOK, response, err)
	})
}

// client gives up a request soon, because until repeats it.
var client = http.Client{Timeout: 2 * time.Second}

// has returns an error unless a request was answered with this status.
func has(status int, response *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		return fmt.Errorf("%s %q %v", response.Status, body, err)
	}
	return nil
}

// flaked runs a command in a container, as `kubectl exec` does.
func (p *kubePod) flaked(container string, args ...string) string {
	p.t.Helper()
	return podman(p.t, append([]string{"exec", p.in(container), "/usr/local/bin/flaked"}, args...)...)
}

// cluster runs the Job that creates the cluster.
func (s *site) cluster() {
	s.t.Helper()
	job := s.play(s.t, s.pod(s.nodes("StatefulSet"), "Job", unique(s.t, "init")))
	if code := strings.TrimSpace(podman(s.t, "wait", job.in("flaked"))); code != "0" {
		s.t.Fatalf("the Job ended with %s", code)
	}
	job.remove()
}

// killed kills a container, and starts it again.
func (p *kubePod) killed(container string) {
	p.t.Helper()
	process := func() string {
		out, _ := try(p.t.Context(), ".", "podman", "inspect", "--format", "{{.State.Pid}}", p.in(container))
		return strings.TrimSpace(out)
	}
	killed := process()
	podman(p.t, "kill", "--signal", "KILL", p.in(container))
	// `podman start` does nothing and ends with 0 as long as podman has not noticed the end.
	until(p.t, 30*time.Second, "the container is restarted", func() error {
		_, err := try(p.t.Context(), ".", "podman", "start", p.in(container))
		if now := process(); err == nil && (now == killed || now == "0" || now == "") {
			err = fmt.Errorf("process %q", now)
		}
		return err
	})
}
