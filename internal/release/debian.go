package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// debian makes a package of a stage that holds the program. nfpm takes the
// files of deploy/debian/nfpm.yaml from there.
func debian(ctx context.Context, o options, stage, arch string) error {
	if err := stageDebian(stage); err != nil {
		return err
	}
	config, err := filepath.Abs("deploy/debian/nfpm.yaml")
	if err != nil {
		return err
	}
	version := debianVersion(o.version)
	to, err := filepath.Abs(filepath.Join(o.out, fmt.Sprintf("flaked_%s_%s.deb", version, arch)))
	if err != nil {
		return err
	}
	nfpm := exec.CommandContext(ctx, "go", "run", o.nfpm, "package", "--config", config, "--packager", "deb", "--target", to)
	nfpm.Dir = stage
	nfpm.Env = append(os.Environ(), "ARCH="+arch, "VERSION="+version, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", o.epoch), "GOFLAGS=", "GOWORK=off")
	if out, err := nfpm.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm: %w\n%s", err, out)
	}
	fmt.Println(filepath.Join(o.out, filepath.Base(to)))
	return nil
}

// stageDebian puts beside the program what the package has beside it.
func stageDebian(stage string) error {
	for to, from := range map[string]string{
		"copyright": "LICENSE", "flaked.sysusers": "deploy/systemd/flaked.sysusers", "flaked.yaml": "deploy/debian/flaked.yaml",
		"postinst": "deploy/debian/postinst", "prerm": "deploy/debian/prerm", "postrm": "deploy/debian/postrm",
		"completions": "deploy/completions",
	} {
		if err := copyAll(filepath.Join(stage, to), from); err != nil {
			return err
		}
	}
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
		var b bytes.Buffer
		err = compress(&b, func(w io.Writer) error { _, err := w.Write(text); return err })
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(stage, "man", filepath.Base(page)+".gz"), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packagedUnit is the unit with the program where a package has it, and without
// the advice to those who install it by hand.
func packagedUnit(unit []byte) ([]byte, error) {
	_, rest, ok := bytes.Cut(unit, []byte("\n[Unit]\n"))
	if !ok || bytes.Count(rest, []byte("/usr/local/bin/flaked")) != 1 {
		return nil, fmt.Errorf("deploy/systemd/flaked.service: no [Unit], or not one /usr/local/bin/flaked")
	}
	head := "# Change it with `systemctl edit flaked`. What /etc/flaked.yaml says of state-dir\n# is not used: that is /var/lib/flaked.\n\n[Unit]\n"
	return append([]byte(head), bytes.Replace(rest, []byte("/usr/local/bin/"), []byte("/usr/bin/"), 1)...), nil
}

func copyAll(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

var (
	// What `git describe --tags --always --dirty` says of a commit after a tag.
	tagged = regexp.MustCompile(`^v?([0-9]+(?:\.[0-9]+)+)(?:-([A-Za-z][0-9A-Za-z.]*))?(?:-([0-9]+)-g([0-9a-f]+))?$`)
	unfit  = regexp.MustCompile(`[^A-Za-z0-9.+~]`)
)

// debianVersion orders as dpkg does: before a version its candidates, after it
// the commits since, and below all what has no tag.
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
