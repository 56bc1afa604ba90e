package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDebianVersion(t *testing.T) {
	t.Parallel()
	// From the lowest to the highest.
	ascending := []struct{ version, want string }{
		{"099e08b-dirty", "0~099e08b.dirty"},
		{"7630cd2", "0~7630cd2"},
		{"unknown", "0~unknown"},
		{"v0.9.0", "0.9.0"},
		{"v1.0.0-rc.1", "1.0.0~rc.1"},
		{"v1.0.0-rc.1-3-g7630cd2", "1.0.0~rc.1+3.g7630cd2"},
		{"v1.0.0", "1.0.0"},
		{"v1.0.0-4-g099e08b", "1.0.0+4.g099e08b"},
		{"1.0.1", "1.0.1"},
		{"v1.0.1-dirty", "1.0.1+dirty"},
		{"v1.10.0", "1.10.0"},
	}
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		t.Log("no dpkg: the order is not checked")
	}
	for i, row := range ascending {
		got := debianVersion(row.version)
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.version, got, row.want)
		}
		if i == 0 || dpkg == "" {
			continue
		}
		if err := exec.Command(dpkg, "--compare-versions", ascending[i-1].want, "lt", got).Run(); err != nil {
			t.Errorf("%s is not above %s", got, ascending[i-1].want)
		}
	}
}

func TestArchiveIsReproducible(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	when := time.Unix(1_800_000_000, 0).UTC()
	files := map[string]string{"flaked": file("p", "program", 0o700), "LICENSE": file("l", "license", 0o600), "man/flaked.1": file("m", "page", 0o666)}
	write := func(name string) []byte {
		path := filepath.Join(dir, name)
		if err := writeArchive(path, "flaked_1", files, when); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	first := write("1.tar.gz")
	// Files with other times and modes, and an archive with another name, give the same
	// bytes.
	later := time.Now().Add(time.Hour)
	for _, path := range files {
		if err := errors.Join(os.Chtimes(path, later, later), os.Chmod(path, 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first, write("2.tar.gz")) {
		t.Error("the same files make another archive")
	}

	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(when) || (h.Mode == 0o755) != (h.Name == "flaked_1/flaked") {
			t.Errorf("%+v", h)
		}
		got = append(got, h.Name)
	}
	if names := strings.Join(got, " "); names != "flaked_1/LICENSE flaked_1/flaked flaked_1/man/flaked.1" {
		t.Error(names)
	}
}

func TestArchiveHasUnitOnlyOnLinux(t *testing.T) {
	t.Chdir("../../..")
	for goos, unit := range map[string]bool{"linux": true, "darwin": false} {
		files, err := contents(goos, "x", "notices")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"flaked", "LICENSE", "THIRD-PARTY-NOTICES", "README.md", "CHANGELOG.md", "docs/operate.md", "docs/http.md", "completions/_flaked", "man/flaked-serve.1"} {
			if files[want] == "" {
				t.Errorf("%s: no %s", goos, want)
			}
		}
		if _, ok := files["systemd/flaked.service"]; ok != unit {
			t.Errorf("%s: a unit: %t", goos, ok)
		}
	}
}

func TestStageHasEveryPackagedFile(t *testing.T) {
	t.Chdir("../../..")
	stage := t.TempDir()
	if err := os.WriteFile(filepath.Join(stage, "THIRD-PARTY-NOTICES"), []byte("licences"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stageDebian(stage); err != nil {
		t.Fatal(err)
	}
	// Every file that the package takes must exist. nfpm would report a missing one too, but
	// takes minutes to download and build the first time.
	config, err := os.ReadFile("deploy/debian/nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stage, "flaked"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(config)) {
		_, rest, ok := strings.Cut(line, "{src: ")
		if !ok {
			continue
		}
		if strings.Contains(rest, "type: symlink") {
			continue
		}
		src, _, _ := strings.Cut(rest, ",")
		src = strings.ReplaceAll(strings.Trim(src, `"`), "${STAGE}", stage)
		if found, err := filepath.Glob(src); err != nil || len(found) == 0 {
			t.Errorf("the package takes %s, which is not there", src)
		}
	}
	for _, name := range []string{"THIRD-PARTY-NOTICES", "README.md", "CHANGELOG.md", "docs/operate.md", "docs/http.md"} {
		path := filepath.Join(stage, "doc", name)
		for path, mode := range map[string]os.FileMode{path: 0o644, filepath.Dir(path): 0o755} {
			if i, err := os.Stat(path); err != nil || i.Mode().Perm() != mode {
				t.Errorf("%s must have mode %o: %v, %v", path, mode, i, err)
			}
		}
	}
	unit, err := os.ReadFile(filepath.Join(stage, "flaked.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/bin/flaked serve --config /etc/flaked.yaml\n") || strings.Contains(string(unit), "/usr/local") {
		t.Errorf("%v\n%s", err, unit)
	}
	if _, err := packagedUnit([]byte("[Service]\n")); err == nil {
		t.Error("a unit without its program was taken")
	}
}
