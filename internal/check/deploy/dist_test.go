package deploy

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// artifacts are the kinds of files of a release. Each file has the version in its name, and in one of its members.
var artifacts = []struct {
	name    string // the group is the version
	licence string // a pattern of the member with flaked's licence
	member  string // a pattern of the member with the version
	version string // the group is the version
}{
	{`flaked_(.+)_(?:linux|darwin)_(?:amd64|arm64)\.tar\.gz`, "*/LICENSE", "", ""},
	{`flaked_(.+)_(?:linux|darwin)_(?:amd64|arm64)\.cdx\.json`, "", "SBOM", `flaked/flaked@(.+?)\?`},
	{`flaked_(.+)_(?:amd64|arm64)\.deb`, "usr/share/doc/flaked/copyright", "control", `(?m)^Version: (.+)$`},
	{`flaked_(.+)_linux_(?:amd64|arm64)_image\.tar`, "usr/share/doc/flaked/LICENSE", "manifest.json", `flaked:(.+?)"`},
	{`flaked-([0-9].+)\.tgz`, "flaked/LICENSE", "flaked/Chart.yaml", `(?m)^version: (.+)$`},
	{`flaked-[a-z-]+-([0-9].+?)(?:-sources)?\.jar`, "META-INF/LICENSE", pomProperties, `(?m)^version=(.+)$`},
	{`flaked-[a-z-]+-([0-9].+?)-javadoc\.jar`, "", "index.html", `<title>.* ([0-9]\S+) API</title>`},
	{`flaked-([0-9].+)-py3-none-any\.whl`, "*.dist-info/licenses/LICENSE", "*.dist-info/METADATA", `(?m)^Version: (.+)$`},
	{`flaked-([0-9].+)\.tar\.gz`, "*/LICENSE", "*/PKG-INFO", `(?m)^Version: (.+)$`},
	{`flaked-node-(.+)\.tgz`, "package/LICENSE", "package/package.json", `"version": "(.+)"`},
}

const pomProperties = "META-INF/maven/io.github.flaked/*/pom.properties"

// needsDist returns the directory with a release's files. It skips the test if there is none.
func needsDist(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("FLAKED_TEST_DIST") // relative to the root of the checkout
	if dir == "" {
		t.Skip("needs the files of a release: make check-release makes them")
	}
	return filepath.Join(repository, dir)
}

func TestReleaseHasLicencesAndOneVersion(t *testing.T) {
	dir := needsDist(t)
	do(t, "env", "-C", dir, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	licence, sums := read(t, filepath.Join(repository, "LICENSE")), read(t, filepath.Join(dir, "SHA256SUMS"))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	versions, kinds := map[string]string{}, map[int]bool{}
	for _, e := range entries {
		name := e.Name()
		if name == "SHA256SUMS" {
			continue
		}
		if !bytes.Contains(sums, []byte("  "+name+"\n")) {
			t.Errorf("SHA256SUMS does not list %s", name)
		}
		kind := -1
		var found []string
		for i, a := range artifacts { // of two patterns that match, the later one is meant
			if match := regexp.MustCompile("^" + a.name + "$").FindStringSubmatch(name); match != nil {
				kind, found = i, match
			}
		}
		if kind < 0 {
			t.Errorf("%s is of no kind that this test knows", name)
			continue
		}
		kinds[kind] = true
		a, inside := artifacts[kind], members(t, filepath.Join(dir, name))
		if a.licence != "" && !bytes.Equal(member(inside, a.licence), licence) {
			t.Errorf("%s: %s is not flaked's licence", name, a.licence)
		}
		versions[plain(found[1])] = name
		if a.version == "" {
			continue
		}
		stated := regexp.MustCompile(a.version).FindSubmatch(member(inside, a.member))
		if stated == nil || plain(string(stated[1])) != plain(found[1]) {
			t.Errorf("%s: %s says version %q", name, a.member, stated)
		}
	}
	if len(versions) != 1 {
		t.Errorf("files of different versions: %v", versions)
	}
	clients := kinds[len(artifacts)-1]
	for i, a := range artifacts {
		if !kinds[i] && (clients || i < 5) {
			t.Errorf("the release has no file %s", a.name)
		}
	}
}

// plain returns a version without the signs that its different kinds of packages want.
func plain(version string) string {
	version = regexp.MustCompile(`^(v|0\.0\.0[-+]g|0~)`).ReplaceAllString(version, "")
	return regexp.MustCompile(`[^0-9a-z]`).ReplaceAllString(version, "")
}

// TestReleaseNamesAllModules compares what the compiler wrote into each program with its SBOM and with its notices.
func TestReleaseNamesAllModules(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join(needsDist(t), "flaked_*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, archive := range archives {
		inside := members(t, archive)
		info, err := buildinfo.Read(bytes.NewReader(member(inside, "*/flaked")))
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		want := []string{"std " + info.GoVersion}
		for _, m := range info.Deps {
			want = append(want, m.Path+" "+m.Version)
			if !bytes.Contains(member(inside, "*/THIRD-PARTY-NOTICES"), []byte("\n"+m.Path+" "+m.Version+"\n")) {
				t.Errorf("%s: THIRD-PARTY-NOTICES does not name %s", archive, m.Path)
			}
		}
		var sbom struct {
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(read(t, strings.TrimSuffix(archive, ".tar.gz")+".cdx.json"), &sbom); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range sbom.Components {
			got = append(got, c.Name+" "+c.Version)
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(want) < 5 || !slices.Equal(got, want) {
			t.Errorf("%s: the SBOM lists %q, and the program contains %q", archive, got, want)
		}
	}
}

// TestReleaseHasNoDeadLinks follows the links of the documents in the archives and packages. The documents also name the
// files in deploy.
func TestReleaseHasNoDeadLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)`)
	for _, pattern := range []string{"flaked_*.tar.gz", "flaked_*.deb"} {
		found, err := filepath.Glob(filepath.Join(needsDist(t), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q %v", pattern, found, err)
		}
		for _, archive := range found {
			inside, links := members(t, archive), 0
			paths := map[string]bool{}
			for name := range inside {
				for ; name != "."; name = path.Dir(name) {
					paths[name] = true
				}
			}
			for name, text := range inside {
				if path.Ext(name) != ".md" {
					continue
				}
				for _, m := range link.FindAllSubmatch(text, -1) {
					to := string(m[1])
					if strings.Contains(to, "://") {
						continue
					}
					if links++; !paths[path.Join(path.Dir(name), to)] {
						t.Errorf("%s: %s links to %s, which is not there", filepath.Base(archive), name, to)
					}
				}
			}
			if links < 50 {
				t.Errorf("%s: %d links found", archive, links)
			}
			for _, file := range []string{"prometheus/flaked.rules.yml", "grafana/flaked.json"} {
				if member(inside, "*/deploy/"+file) == nil && member(inside, "usr/share/doc/flaked/deploy/"+file) == nil {
					t.Errorf("%s has no deploy/%s", filepath.Base(archive), file)
				}
			}
		}
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// member returns the content of the member whose path matches the pattern.
func member(members map[string][]byte, pattern string) []byte {
	for name, data := range members {
		if ok, _ := path.Match(pattern, name); ok {
			return data
		}
	}
	return nil
}

// members returns the files in an archive. Those of an image's layer are among them.
func members(t testing.TB, file string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	switch filepath.Ext(file) {
	case ".json":
		all["SBOM"] = read(t, file)
	case ".jar", ".whl":
		archive, err := zip.OpenReader(file)
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		for _, f := range archive.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			all[f.Name] = readAll(t, r)
		}
	case ".deb":
		untar(t, strings.NewReader(do(t, "dpkg-deb", "--fsys-tarfile", file)), all)
		all["control"] = []byte(do(t, "dpkg-deb", "--field", file))
	case ".tar":
		untar(t, bytes.NewReader(read(t, file)), all)
		untar(t, unzipped(t, all["layer.tar.gz"]), all)
	default:
		untar(t, unzipped(t, read(t, file)), all)
	}
	return all
}

func unzipped(t testing.TB, data []byte) io.Reader {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func untar(t testing.TB, r io.Reader, all map[string][]byte) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			all[path.Clean(header.Name)] = readAll(t, archive)
		}
	}
}

func readAll(t testing.TB, r io.Reader) []byte {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
