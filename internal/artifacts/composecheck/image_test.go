package composecheck

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const dockerfilePath = "../../../Dockerfile"

// readImages parses Dockerfiles by BuildKit's parser, all in one process.
func readImages(t *testing.T, texts []string) []Image {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "dockerfile")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Dir = "dockerfile"
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	mode := os.Getenv("FLAKED_TEST_CLIENTS")
	if mode == "" {
		build.Env = append(build.Env, "GOPROXY=off") // only an explicit request may download
	}
	if out, err := build.CombinedOutput(); err != nil {
		if mode == "require" {
			t.Fatalf("FLAKED_TEST_CLIENTS=require, but no parser of BuildKit: %v\n%s; scripts/get-clients.sh gets it", err, out)
		}
		t.Skipf("no parser of BuildKit: %v\n%s; scripts/get-clients.sh gets it", err, out)
	}
	var paths []string
	for i, text := range texts {
		path := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	out, err := exec.Command(bin, paths...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var images []Image
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var i Image
		if err := dec.Decode(&i); err != nil {
			t.Fatal(err)
		}
		images = append(images, i)
	}
	return images
}

func TestDockerfilePassesAndMistakesAreFound(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(dockerfilePath)
	if err != nil {
		t.Fatal(err)
	}
	// Each row makes one mistake in the real file.
	mistakes := []struct{ name, old, new, want string }{
		{"an instruction misspelt", "\nUSER ", "\nUSERS ", "unknown instruction"},
		{"a flag misspelt", "--chown=", "--chwon=", "unknown flag"},
		{"a stage misspelt", "--from=build", "--from=built", "no such stage"},
		{"root", "USER 65532:65532", "USER 0:0", "other than root"},
		{"a user by name", "USER 65532:65532", "USER flaked", "in numbers"},
		{"another owner", "--chown=65532:65532", "--chown=1000:1000", "could not be written"},
		{"another base", "FROM scratch", "FROM debian:12", "not with scratch"},
		{"a shell", `CMD ["serve"]`, "CMD serve", "no shell"},
		{"a shell for the check", `CMD ["/usr/local/bin/flaked", "healthcheck"]`, "CMD flaked healthcheck", "no shell"},
		{"no check", "HEALTHCHECK ", "# ", "HEALTHCHECK [], want"},
		{"with libc", "CGO_ENABLED=0", "CGO_ENABLED=1", "builds a static"},
		{"the program elsewhere", "-o /image/usr/local/bin/flaked", "-o /image/flaked", "builds a static"},
	}
	texts := []string{string(data)}
	for _, m := range mistakes {
		broken := strings.Replace(string(data), m.old, m.new, 1)
		if broken == string(data) {
			t.Fatalf("%s: the file holds no %q", m.name, m.old)
		}
		texts = append(texts, broken)
	}
	images := readImages(t, texts)
	if err := CheckImage(images[0]); err != nil {
		t.Error(err)
	}
	for i, m := range mistakes {
		if err := CheckImage(images[i+1]); err == nil || !strings.Contains(err.Error(), m.want) {
			t.Errorf("%s: found %v, want %q", m.name, err, m.want)
		}
	}
	if !t.Failed() {
		t.Run("runs", func(t *testing.T) { runImage(t, images[0]) })
	}
}
