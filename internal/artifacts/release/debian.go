package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// debian makes a Debian package. The directory stage must hold the program and the notices.
// deploy/debian/nfpm.yaml names the other files: those of the repository, and those that
// stageDebian makes in stage.
func debian(ctx context.Context, o options, stage, arch string) error {
	if err := stageDebian(stage); err != nil {
		return err
	}
	version := debianVersion(o.version)
	to := filepath.Join(o.out, fmt.Sprintf("flaked_%s_%s.deb", version, arch))
	nfpm := exec.CommandContext(ctx, "go", "run", o.nfpm, "package", "--config", "deploy/debian/nfpm.yaml", "--packager", "deb", "--target", to)
	nfpm.Env = append(os.Environ(), "STAGE="+stage, "ARCH="+arch, "VERSION="+version, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", o.epoch), "GOFLAGS=", "GOWORK=off")
	if out, err := nfpm.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm: %w\n%s", err, out)
	}
	fmt.Println(to)
	return nil
}

// stageDebian puts the unit, the compressed man pages and the documents into stage.
func stageDebian(stage string) error {
	unit, err := os.ReadFile("deploy/systemd/flaked.service")
	if err != nil {
		return err
	}
	unit, err = packagedUnit(unit)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(stage, "flaked.service"), unit, 0o644); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(stage, "man"), 0o755); err != nil {
		return err
	}
	pages, err := filepath.Glob("deploy/man/*.1")
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		data, err := gzipped(text)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(stage, "man", filepath.Base(page)+".gz"), data, 0o644); err != nil {
			return err
		}
	}
	files, err := documents(filepath.Join(stage, "THIRD-PARTY-NOTICES"))
	if err != nil {
		return err
	}
	for name, from := range files {
		if err := stageDocument(filepath.Join(stage, "doc", filepath.FromSlash(name)), from); err != nil {
			return err
		}
	}
	return nil
}

// stageDocument copies a file. nfpm copies the modes of the file and of its directory into the
// package, so they must not depend on the umask.
func stageDocument(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	dir := filepath.Dir(to)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chmod(dir, 0o755), os.Chmod(to, 0o644))
}

// packagedUnit returns the unit for the package. It starts /usr/bin/flaked, and its head
// does not explain a manual installation.
func packagedUnit(unit []byte) ([]byte, error) {
	_, rest, ok := bytes.Cut(unit, []byte("\n[Unit]\n"))
	if !ok || bytes.Count(rest, []byte("/usr/local/bin/flaked")) != 1 {
		return nil, fmt.Errorf("deploy/systemd/flaked.service must have [Unit] and exactly one /usr/local/bin/flaked")
	}
	head := "# Change this unit with `systemctl edit flaked`. The state directory is always\n# /var/lib/flaked: state-dir in /etc/flaked.yaml is ignored.\n\n[Unit]\n"
	return append([]byte(head), bytes.Replace(rest, []byte("/usr/local/bin/"), []byte("/usr/bin/"), 1)...), nil
}

var (
	// tagged matches the output of `git describe --tags --always --dirty` for a commit
	// that has a tag before it, without -dirty.
	tagged = regexp.MustCompile(`^v?([0-9]+(?:\.[0-9]+)+)(?:-([A-Za-z][0-9A-Za-z.]*))?(?:-([0-9]+)-g([0-9a-f]+))?$`)
	unfit  = regexp.MustCompile(`[^A-Za-z0-9.+~]`)
)

// debianVersion returns the package's version for a version from git describe. dpkg sorts
// release candidates before their version, later commits after it, and versions without a
// tag before all others.
func debianVersion(version string) string {
	clean, dirty := strings.CutSuffix(version, "-dirty")
	m := tagged.FindStringSubmatch(clean)
	if m == nil {
		return "0~" + unfit.ReplaceAllString(version, ".")
	}
	out := m[1]
	if m[2] != "" {
		out += "~" + m[2]
	}
	if m[3] != "" {
		out += "+" + m[3] + ".g" + m[4]
	}
	if dirty {
		out += "+dirty"
	}
	return out
}
