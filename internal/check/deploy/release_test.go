package deploy

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// dist returns the directory with a release's files: FLAKED_TEST_DIST, or one that is made now.
func dist(t testing.TB) string {
	t.Helper()
	dir, err := madeDist()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var madeDist = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("FLAKED_TEST_DIST"); dir != "" {
		return filepath.Join(repository, dir), nil
	}
	dir := filepath.Join(repository, "bin", "dist")
	_, err := try(context.Background(), ".", "scripts/release.sh", "v0.1.0-rc1", "315619200", dir,
		"linux/"+runtime.GOARCH, "clients")
	return dir, err
})

// distFile returns the name of the release's one file that matches the pattern and is no jar of sources or documents.
func distFile(t testing.TB, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist(t), pattern))
	found = slices.DeleteFunc(found, func(file string) bool {
		return strings.HasSuffix(file, "-sources.jar") || strings.HasSuffix(file, "-javadoc.jar")
	})
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in %s: %q %v", pattern, dist(t), found, err)
	}
	return filepath.Base(found[0])
}

// packaged are the client packages, and how a program uses each. The script runs in a container with JDK, Python and
// Node, in an empty directory. $1 is the package in dist/. The program prints two IDs of the node $FLAKED.
var packaged = []struct{ name, file, script string }{
	{"jar", "flaked-client-*.jar", `cat >Try.java <<'JAVA'
import io.github.flaked.client.FlakedClient;
class Try {
    public static void main(String[] args) {
        try (FlakedClient flaked = FlakedClient.builder().addresses(System.getenv("FLAKED")).build()) {
            for (long id : flaked.next(2)) System.out.println(id);
        }
    }
}
JAVA
java -cp "$1" Try.java`},
	{"wheel", "flaked-*.whl", usePython},
	{"sdist", "flaked-[0-9]*.tar.gz", usePython},
	{"npm", "flaked-node-*.tgz", `mkdir -p node_modules/flaked && tar -xzf "$1" -C node_modules/flaked --strip-components 1
cat >try.mjs <<'JS'
import { Client } from "flaked";
const client = new Client({ addresses: [process.env.FLAKED] });
console.log(String(await client.next()));
JS
cat >try.cjs <<'JS'
const { Client } = require("flaked");
const client = new Client({ addresses: [process.env.FLAKED] });
client.next().then((id) => console.log(String(id)));
JS
node try.mjs && node try.cjs`},
}

const usePython = `python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check "$1"
cat >try.py <<'PY'
import os, flaked
with flaked.Client([os.environ["FLAKED"]]) as client:
    for id in client.next_many(2):
        print(id)
PY
venv/bin/python try.py`

// TestReleasedPrograms runs the archive's program in a container, and each client of the release with it.
func TestReleasedPrograms(t *testing.T) {
	needsEngine(t)
	zk, address, node := zktest.Chroot(t, zktest.Shared(t)), freeAddress(t), unique(t, "archive")
	archive := distFile(t, "flaked_*_linux_"+runtime.GOARCH+".tar.gz")
	name := strings.TrimSuffix(archive, ".tar.gz")
	removed(t, node)
	podman(t, "run", "--detach", "--name", node, "--network", "host", "-v", dist(t)+":/dist:ro", "--workdir", "/opt",
		"localhost/flaked-systemd", "sh", "-c", `tar -xzf /dist/"$0" && exec "$1"/flaked serve --zk "$2" --bootstrap \
			--heartbeat 200ms --confirm-time 800ms --state-dir /var/lib/flaked --admin off --listen "$3"`,
		archive, name, zk, address)
	ready(t, address)
	host, port, _ := strings.Cut(address, ":")
	seen := map[string]bool{}
	issued := func(t *testing.T, out string, want int) {
		t.Helper()
		for _, id := range strings.Fields(out) {
			if !regexp.MustCompile(`^[1-9][0-9]{15,18}$`).MatchString(id) || seen[id] {
				t.Errorf("%q is no ID, or an earlier one", id)
			}
			seen[id] = true
			want--
		}
		if want != 0 {
			t.Errorf("%d IDs are missing: %q", want, out)
		}
	}
	issued(t, do(t, "sh", "-c", `printf 'GET\n' | nc -N "$0" "$1"`, host, port), 1)
	version, _, _ := strings.Cut(podman(t, "exec", node, "/opt/"+name+"/flaked", "--version"), "\n")
	if !strings.HasPrefix(name, "flaked_"+strings.TrimPrefix(strings.TrimPrefix(version, "flaked "), "v")+"_") {
		t.Errorf("%s has version %q", archive, version)
	}
	for _, p := range packaged {
		t.Run(p.name, func(t *testing.T) {
			args := []string{"run", "--rm", "--network", "host", "-v", dist(t) + ":/dist:ro", "-e", "FLAKED=" + address,
				"--workdir", "/opt", "localhost/flaked-clients", "sh", "-ec", p.script, "sh", "/dist/" + distFile(t, p.file)}
			issued(t, podman(t, args...), 2)
		})
	}
}

// loadImage loads the release's image for the test, and returns its name.
func loadImage(t testing.TB) string {
	t.Helper()
	file := distFile(t, "flaked_*_linux_"+runtime.GOARCH+"_image.tar")
	out := podman(t, "load", "--quiet", "--input", filepath.Join(dist(t), file))
	_, name, _ := strings.Cut(strings.TrimSpace(out), "Loaded image: ")
	if name == "" {
		t.Fatalf("podman load: %q", out)
	}
	t.Cleanup(func() { _, _ = try(context.Background(), ".", "podman", "rmi", "--force", name) })
	return name
}

// TestReleasedImage compares the image with that of the Dockerfile, and runs it without rights.
func TestReleasedImage(t *testing.T) {
	needsImage(t)
	released := loadImage(t)
	settings := func(image string) string {
		return podman(t, "image", "inspect", "--format", "{{.Os}} {{.Architecture}} {{.User}} {{json .HealthCheck}} "+
			"{{.Config.Env}} {{.Config.ExposedPorts}} {{.Config.StopSignal}} {{.Config.Entrypoint}} {{.Config.Cmd}}", image)
	}
	if got, want := settings(released), settings(image); got != want {
		t.Errorf("settings of the release's image: %s\nof the Dockerfile's: %s", got, want)
	}
	c := newContainer(t, zktest.Chroot(t, zktest.Shared(t)), "released")
	c.image = released
	c.run()
	podman(t, "healthcheck", "run", c.name)
	podman(t, "stop", "--time", "20", c.name)
	if code := c.exitCode(); code != "0" {
		t.Errorf("SIGTERM: exit code %s", code)
	}
}

// TestReleasedChart runs a pod of the release's chart, whose version names the release's image.
func TestReleasedChart(t *testing.T) {
	needsImage(t)
	needsNetwork(t)
	s := newSite(t)
	repository, _, _ := strings.Cut(loadImage(t), ":")
	s.chart = []string{filepath.Join(dist(t), distFile(t, "flaked-[0-9]*.tgz")), "image.repository=" + repository}
	s.cluster()
	s.statefulPod(t, drawn{})
}
