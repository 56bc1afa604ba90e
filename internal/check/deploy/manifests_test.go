package deploy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// drawn are the IDs that pods have issued, with the pod.
type drawn map[string]string

// draw takes n IDs from a pod. It fails the test if an ID has been issued before.
func (d drawn) draw(p *kubePod, container string, n int) {
	p.t.Helper()
	for id := range strings.Lines(p.flaked(container, "get", fmt.Sprint(n))) {
		if other, twice := d[id]; twice {
			p.t.Errorf("%s: ID %s was issued twice, first by %s", p.name, strings.TrimSpace(id), other)
		}
		d[id] = p.name
	}
}

// TestManifestsInPods runs what the charts deploy/helm/flaked and examples/webapp/chart render as pods.
func TestManifestsInPods(t *testing.T) {
	needsImage(t)
	needsNetwork(t)
	s := newSite(t)
	s.cluster()
	d := drawn{}
	t.Run("Deployment", func(t *testing.T) { s.deploymentPods(t, d) })
	t.Run("StatefulSet", func(t *testing.T) { s.statefulPod(t, d) })
	t.Run("sidecar", func(t *testing.T) { s.sidecarPod(t, d) })
	t.Logf("%d different IDs", len(d))
}

func (s *site) deploymentPods(t *testing.T, d drawn) {
	start := func(name string) *kubePod {
		pod := s.pod(s.nodes("Deployment"), "Deployment", unique(t, name))
		// podman stops a pod whose last container has ended, even if that container is just being started again.
		spec := pod["spec"].(fields)
		spec["containers"] = append(list(spec["containers"]), fields{"name": "other", "image": image,
			"args": []string{"serve", "--dev", "--listen=127.0.0.1:7700", "--admin=off"}})
		return s.play(t, pod)
	}
	first, second := start("a"), start("b")
	for _, p := range []*kubePod{first, second} {
		p.probe("/readyz")
		p.probe("/livez")
		d.draw(p, "flaked", 1000)
		if answer, err := ask(p.address(7609), "GET"); err != nil || !strings.HasPrefix(answer, "-NOAUTH") {
			t.Errorf("GET without a token: %q %v", answer, err)
		}
		if answer, err := ask(p.address(7609), authenticate); err != nil || answer != "OK" {
			t.Errorf("AUTH: %q %v", answer, err)
		}
	}
	worker := workerOf(t, first.address(7609), authenticate)
	first.killed("flaked")
	first.probe("/readyz")
	hasWorker(t, first.address(7609), worker, "a kill of the container", authenticate)
	d.draw(first, "flaked", 1000)
	first.remove()
	second.remove()
}

func (s *site) statefulPod(t *testing.T, d drawn) {
	claim := unique(t, "stateful")
	t.Cleanup(func() { _, _ = try(context.Background(), ".", "podman", "volume", "rm", "--force", claim+"-claim") })
	pod := s.pod(s.nodes("StatefulSet"), "StatefulSet", claim)
	p := s.play(t, pod)
	p.probe("/readyz")
	d.draw(p, "flaked", 1000)
	worker := workerOf(t, p.address(7609), authenticate)
	p.remove()
	p = s.play(t, pod)
	p.probe("/readyz")
	hasWorker(t, p.address(7609), worker, "a new pod with the same claim", authenticate)
	d.draw(p, "flaked", 1000)
	p.remove()
}

func (s *site) sidecarPod(t *testing.T, d drawn) {
	buildWebapp(t)
	p := s.play(t, s.pod(s.sidecar(), "Deployment", unique(t, "webapp")))
	p.probe("/readyz")
	d.draw(p, "flaked", 1000)
	until(t, 30*time.Second, "an order", func() error {
		response, err := client.PostForm("http://"+p.address(8080)+"/orders", url.Values{"item": {"book"}})
		return has(http.StatusCreated, response, err)
	})
	p.remove()
}

// buildWebapp makes the image webapp of examples/webapp.
func buildWebapp(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	do(t, "env", "CGO_ENABLED=0", "go", "build", "-o", filepath.Join(dir, "webapp"), "./examples/webapp")
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"),
		[]byte("FROM scratch\nCOPY webapp /webapp\nENTRYPOINT [\"/webapp\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, "buildah", "bud", "-t", "localhost/webapp:dev", dir)
}
