package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pkg is a package that the program links, as `go list -json` describes it.
type pkg struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *mod
}

type mod struct {
	Path, Version, Dir string
	Main               bool
}

var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([-._].*)?$`)
	// noticeName matches files that some licences require beside the licence's own text.
	noticeName = regexp.MustCompile(`(?i)^(notice|copyright|patents)([-._].*)?$`)
)

// writeNotices writes the licences of all software that the program links, except flaked's
// own licence, to the path to. env is the environment in which the program was built.
func writeNotices(ctx context.Context, env []string, program, to string) error {
	goroot, version, packages, err := linkedPackages(ctx, env)
	if err != nil {
		return err
	}
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	for _, m := range built.Deps {
		if !slices.ContainsFunc(packages, func(p pkg) bool { return p.Module != nil && p.Module.Path == m.Path }) {
			return fmt.Errorf("the program links the module %s, but `go list -deps ./cmd/flaked` does not list it", m.Path)
		}
	}
	text, err := notices(goroot, version, packages)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// linkedPackages returns Go's root directory, its version, and the packages that the program
// links.
func linkedPackages(ctx context.Context, env []string) (goroot, version string, packages []pkg, err error) {
	output := func(args ...string) ([]byte, error) {
		c := exec.CommandContext(ctx, "go", args...)
		c.Env, c.Stderr = env, os.Stderr
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("go %s: %w", args[0], err)
		}
		return out, nil
	}
	out, err := output("env", "GOROOT", "GOVERSION")
	if err != nil {
		return "", "", nil, err
	}
	goroot, version, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	out, err = output("list", "-deps", "-json=ImportPath,Dir,Standard,Module", "./cmd/flaked")
	if err != nil {
		return "", "", nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return goroot, version, packages, nil
		}
		if err != nil {
			return "", "", nil, err
		}
		packages = append(packages, p)
	}
}

// notices returns the text of THIRD-PARTY-NOTICES. It has the licences in the root directory
// of each module and those in the directories of the linked packages, because some modules
// contain code of others.
func notices(goroot, version string, packages []pkg) ([]byte, error) {
	type source struct{ title, root string }
	files := map[source]map[string]bool{}
	for _, p := range packages {
		s := source{"Go's standard library, " + version, goroot}
		switch {
		case p.Standard:
		case p.Module == nil:
			return nil, fmt.Errorf("the package %s belongs to no module", p.ImportPath)
		case p.Module.Main:
			continue
		default:
			s = source{p.Module.Path + " " + p.Module.Version, p.Module.Dir}
		}
		if files[s] == nil {
			files[s] = map[string]bool{}
		}
		if p.Dir == "" { // unsafe
			continue
		}
		if err := collect(files[s], s.root, p.Dir); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	var b bytes.Buffer
	b.WriteString("The program flaked contains the software that this file lists. The licence of each part\nfollows its name. The licence of flaked itself is in the file LICENSE.\n")
	for _, s := range slices.SortedFunc(maps.Keys(files), func(x, y source) int { return strings.Compare(x.title, y.title) }) {
		names := slices.Sorted(maps.Keys(files[s]))
		if !slices.ContainsFunc(names, licenceName.MatchString) {
			return nil, fmt.Errorf("%s has no licence file (LICENSE, LICENCE or COPYING) in %s. A release must not contain a module without a licence. Remove the dependency, or take a version with a licence", s.title, s.root)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("=", 80), s.title)
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(s.root, name))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "\n%s %s\n\n%s\n", strings.Repeat("-", 10), filepath.ToSlash(name), bytes.TrimRight(text, " \t\r\n"))
		}
	}
	return b.Bytes(), nil
}

// collect adds the licences and notices in dir and in the directories above it, up to root,
// to files. Their names are relative to root.
func collect(files map[string]bool, root, dir string) error {
	below, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	for ; ; below = filepath.Dir(below) {
		entries, err := os.ReadDir(filepath.Join(root, below))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := e.Name()
			if e.Type().IsRegular() && filepath.Ext(name) != ".go" && (licenceName.MatchString(name) || noticeName.MatchString(name)) {
				files[filepath.Join(below, name)] = true
			}
		}
		if below == "." {
			return nil
		}
	}
}
