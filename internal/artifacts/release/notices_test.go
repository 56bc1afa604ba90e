package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocumentsOfSubdirectoriesAreReleased(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"README.md", "CHANGELOG.md", "docs/a.md", "docs/zh/b.md", "docs/zh/c.svg", "docs/d.go"} {
		writeFile(t, name, name)
	}
	files, err := documents("notices")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 6 || files["docs/a.md"] == "" || files["docs/zh/b.md"] == "" || files["docs/zh/c.svg"] == "" || files["THIRD-PARTY-NOTICES"] != "notices" {
		t.Errorf("%v", files)
	}
	if err := os.Remove("CHANGELOG.md"); err != nil {
		t.Fatal(err)
	}
	if _, err := documents("notices"); err == nil || !strings.Contains(err.Error(), "CHANGELOG.md not found") {
		t.Errorf("without a changelog: %v", err)
	}
}

func TestNoticesHaveLicencesOfModulesAndOfCodeInsideThem(t *testing.T) {
	t.Parallel()
	goroot, one, two := t.TempDir(), t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(goroot, "LICENSE"), "licence of Go")
	writeFile(t, filepath.Join(goroot, "src/vendor/net/LICENSE"), "licence of net")
	writeFile(t, filepath.Join(goroot, "src/fmt/license.go"), "no licence")
	writeFile(t, filepath.Join(one, "LICENSE.txt"), "licence of one\r\n\n")
	writeFile(t, filepath.Join(one, "NOTICE"), "notice of one")
	writeFile(t, filepath.Join(one, "internal/gddo/LICENSE"), "licence of gddo")
	writeFile(t, filepath.Join(one, "unlinked/LICENSE"), "not linked")
	writeFile(t, filepath.Join(two, "NOTICE"), "only a notice")
	packages := []pkg{
		module("example.com/one", one, "internal/gddo"),
		module("example.com/one", one, "."),
		{ImportPath: "unsafe", Standard: true},
		{ImportPath: "fmt", Standard: true, Dir: filepath.Join(goroot, "src/fmt")},
		{ImportPath: "vendor/net", Standard: true, Dir: filepath.Join(goroot, "src/vendor/net")},
	}
	got, err := notices(goroot, "go1.99", packages)
	if err != nil {
		t.Fatal(err)
	}
	_, parts, _ := strings.Cut(string(got), "\n\n")
	line := strings.Repeat("=", 80) + "\n"
	want := line + "Go's standard library, go1.99\n\n---------- LICENSE\n\nlicence of Go\n\n---------- src/vendor/net/LICENSE\n\nlicence of net\n\n" +
		line + "example.com/one v1.2.3\n\n---------- LICENSE.txt\n\nlicence of one\n\n---------- NOTICE\n\nnotice of one\n\n---------- internal/gddo/LICENSE\n\nlicence of gddo\n"
	if parts != want {
		t.Errorf("%s\nwant:\n%s", parts, want)
	}
	_, err = notices(goroot, "go1.99", append(packages, module("example.com/two", two, ".")))
	if err == nil || !strings.Contains(err.Error(), "example.com/two v1.2.3 has no licence file") {
		t.Errorf("a module without a licence: %v", err)
	}
}

// TestNoticesNameEveryLinkedModule builds flaked. It fails if a module that flaked links has
// no licence.
func TestNoticesNameEveryLinkedModule(t *testing.T) {
	t.Chdir("../../..")
	program, to := filepath.Join(t.TempDir(), "flaked"), filepath.Join(t.TempDir(), "notices")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/flaked").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := writeNotices(t.Context(), os.Environ(), program, to); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nGo's standard library, go1.", "\ngithub.com/go-zookeeper/zk v1.", "\ngoogle.golang.org/protobuf v1."} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the notices do not contain %q", want)
		}
	}
	if strings.Contains(string(text), "\ngithub.com/flaked/flaked ") {
		t.Error("the notices contain flaked itself")
	}
}

func TestSBOMHasNothingOfTheMachineThatMadeIt(t *testing.T) {
	t.Parallel()
	made := func(hash, more string) string {
		return `{"metadata":{"tools":[{"name":"gomod","version":"v1","hashes":[{"content":"` + hash + `"}]}],"component":{"purl":"a?b&c"}},"components":[{"name":"zk","hashes":[{"content":"h1"}]}]` + more + `}`
	}
	first, err := reproducibleSBOM([]byte(made("1", "")))
	if err != nil {
		t.Fatal(err)
	}
	second, err := reproducibleSBOM([]byte(made("2", "")))
	if err != nil || string(first) != string(second) {
		t.Errorf("%v\n%s\n%s", err, first, second)
	}
	if !strings.Contains(string(first), `"a?b&c"`) || !strings.Contains(string(first), `"h1"`) {
		t.Errorf("%s", first)
	}
	for _, bad := range []string{
		made("1", `,"serialNumber":"urn:uuid:1"`),
		strings.Replace(made("1", ""), `{"tools"`, `{"timestamp":"2026-01-01T00:00:00Z","tools"`, 1),
		`{"metadata":{"tools":[{}]},"components":[]}`,
		`not JSON`,
	} {
		if got, err := reproducibleSBOM([]byte(bad)); err == nil {
			t.Errorf("%s was accepted:\n%s", bad, got)
		}
	}
}

// module returns a package in the directory below of a module.
func module(path, dir, below string) pkg {
	return pkg{ImportPath: path + "/" + below, Dir: filepath.Join(dir, below), Module: &mod{Path: path, Version: "v1.2.3", Dir: dir}}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
