// Command release makes the files of a release: an archive and an SBOM for each platform,
// Debian packages, and SHA256SUMS. `make release` runs it.
//
// The same commit and the same version of Go give the same bytes on every machine. The
// files contain nothing of the machine, its paths or the present time. `make release-check`
// proves this.
//
// GoReleaser v2.16.0 was tried in place of this program. It made archives and Debian packages,
// and ran cyclonedx-gomod for the SBOMs. Two clones of a commit gave the same bytes. flaked
// keeps its own program for these reasons:
//
//   - GoReleaser makes a release only in a git repository with a tag. Without them it makes
//     a snapshot. `make release` works for each commit, and `make release-check` builds in a
//     directory without git.
//   - The archives of two clones differed until the configuration set the time of each list
//     of files. This program sets the time of all files.
//   - Nothing in the trial made THIRD-PARTY-NOTICES. The packaged unit and the compressed man
//     pages need code, too, so a program like this one would remain.
//   - GoReleaser links 321 modules, and took 254 s to download and build on 2 cores. nfpm
//     links 55 and cyclonedx-gomod 40.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

type options struct {
	version   string
	epoch     int64
	out       string
	platforms string
	nfpm      string
	sbom      string
	cache     string
}

func main() {
	var o options
	flag.StringVar(&o.version, "version", "", "version that the program reports")
	flag.Int64Var(&o.epoch, "epoch", 0, "modification time of all files, in Unix seconds: the time of the commit")
	flag.StringVar(&o.out, "out", "dist", "output directory; existing files in it are removed")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64,darwin/arm64,darwin/amd64", "platforms to build for: os/arch,...")
	flag.StringVar(&o.nfpm, "nfpm", "", "Go package of nfpm, PACKAGE@VERSION (empty: no Debian packages)")
	flag.StringVar(&o.sbom, "sbom", "", "Go package of cyclonedx-gomod, PACKAGE@VERSION (empty: no SBOMs)")
	flag.StringVar(&o.cache, "cache", "", "directory of Go's build cache for flaked (empty: Go's default)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.version == "" {
		return errors.New("-version is required")
	}
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for p := range strings.SplitSeq(o.platforms, ",") {
		goos, arch, ok := strings.Cut(p, "/")
		if !ok {
			return fmt.Errorf("-platforms: %q is not os/arch", p)
		}
		if err := one(ctx, o, goos, arch); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return checksums(o.out)
}

// one makes the archive and the SBOM of a platform, and on Linux its Debian package.
func one(ctx context.Context, o options, goos, arch string) error {
	stage, err := os.MkdirTemp("", "flaked-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	program := filepath.Join(stage, "flaked")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+o.version, "-o", program, "./cmd/flaked")
	// The program must not depend on GOAMD64 and the like in this environment.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	if o.cache != "" {
		build.Env = append(build.Env, "GOCACHE="+o.cache)
	}
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	notices := filepath.Join(stage, "THIRD-PARTY-NOTICES")
	if err := writeNotices(ctx, build.Env, program, notices); err != nil {
		return err
	}
	when := time.Unix(o.epoch, 0).UTC()
	name := fmt.Sprintf("flaked_%s_%s_%s", strings.TrimPrefix(o.version, "v"), goos, arch)
	files, err := contents(goos, program, notices)
	if err != nil {
		return err
	}
	if err := writeArchive(filepath.Join(o.out, name+".tar.gz"), name, files, when); err != nil {
		return err
	}
	fmt.Println(filepath.Join(o.out, name+".tar.gz"))
	if o.sbom != "" {
		to := filepath.Join(o.out, name+".cdx.json")
		if err := writeSBOM(ctx, o, program, to); err != nil {
			return err
		}
		fmt.Println(to)
	}
	if goos == "linux" && o.nfpm != "" {
		return debian(ctx, o, stage, arch)
	}
	return nil
}

// contents returns the files of an archive: the path in the archive, then the path on disk.
func contents(goos, program, notices string) (map[string]string, error) {
	files, err := documents(notices)
	if err != nil {
		return nil, err
	}
	files["flaked"] = program
	patterns := []string{"LICENSE", "deploy/completions/*", "deploy/man/*"}
	if goos == "linux" {
		patterns = append(patterns, "deploy/systemd/*")
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, missing(pattern)
		}
		for _, f := range found {
			files[strings.TrimPrefix(filepath.ToSlash(f), "deploy/")] = f
		}
	}
	return files, nil
}

// documents returns the documents, the changelog and the notices: the path in an archive or
// below a package's directory of documents, then the path on disk.
func documents(notices string) (map[string]string, error) {
	files := map[string]string{"THIRD-PARTY-NOTICES": notices}
	found, err := filepath.Glob("*.md")
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		files[f] = f
	}
	for _, f := range []string{"README.md", "CHANGELOG.md"} {
		if files[f] == "" {
			return nil, missing(f)
		}
	}
	err = filepath.WalkDir("docs", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (filepath.Ext(path) == ".md" || filepath.Ext(path) == ".svg") {
			files[filepath.ToSlash(path)] = path
		}
		return err
	})
	return files, err
}

func missing(name string) error {
	return fmt.Errorf("%s not found. Run this in the directory of go.mod", name)
}

func checksums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), lines.Bytes(), 0o644)
}

// gzipped returns data in gzip's form. The same data give the same bytes, because the header
// has no name and no time.
func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
