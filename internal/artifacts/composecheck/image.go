package composecheck

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Image is a parsed Dockerfile, as internal/artifacts/composecheck/dockerfile prints it.
type Image struct {
	Error    string   `json:"error"`
	Warnings []string `json:"warnings"`
	Stages   []Stage  `json:"stages"`
}

// Stage is one FROM of a Dockerfile and the instructions after it.
type Stage struct {
	Name     string    `json:"name"`
	Base     string    `json:"base"`
	Commands []Command `json:"commands"`
}

// Command is one instruction.
type Command struct {
	Name  string   `json:"name"`
	Args  []string `json:"args"`
	Shell bool     `json:"shell"`
	From  string   `json:"from"`
	Owner string   `json:"owner"`
}

// program is the path of flaked in the image.
const program = "/usr/local/bin/flaked"

// serviceUser matches a user and a group other than root, in numbers. The image has no
// file of user names, and Kubernetes' runAsNonRoot accepts only numbers.
var serviceUser = regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`)

// CheckImage returns all mistakes in the Dockerfile, joined, or nil.
func CheckImage(i Image) error {
	if i.Error != "" {
		return errors.New(i.Error)
	}
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, w := range i.Warnings {
		fail("BuildKit warns: %s", w)
	}
	var built []string // names of earlier stages
	for n, s := range i.Stages {
		for _, c := range s.Commands {
			if c.From != "" && !slices.Contains(built, c.From) {
				fail("%s --from=%s: there is no such stage before it", c.Name, c.From)
			}
		}
		if n < len(i.Stages)-1 {
			built = append(built, s.Name)
		}
	}
	if len(i.Stages) < 2 {
		fail("%d stages: one builds, another is the image", len(i.Stages))
		return errors.Join(errs...)
	}
	last := i.Stages[len(i.Stages)-1]
	if last.Base != "scratch" {
		fail("the image begins with %s, not with scratch", last.Base)
	}
	is := map[string]Command{}
	for _, c := range last.Commands {
		is[c.Name] = c
		// The last stage begins from scratch, so it has no shell.
		if c.Shell || c.Name == "RUN" {
			fail("%s %q: there is no shell in the image", c.Name, c.Args)
		}
	}
	only := func(name string, want ...string) {
		if got := is[name].Args; !slices.Equal(got, want) {
			fail("%s %q, want %q", name, got, want)
		}
	}
	only("ENTRYPOINT", program)
	only("CMD", "serve")
	only("HEALTHCHECK", program, "healthcheck")
	only("STOPSIGNAL", "SIGTERM")
	user := strings.Join(is["USER"].Args, " ")
	if !serviceUser.MatchString(user) {
		fail("USER %q: not a user and a group in numbers, other than root", user)
	}
	if owner := is["COPY"].Owner; owner != user {
		fail("COPY --chown=%s: not the user, %s: the state directory could not be written", owner, user)
	}
	builds := false
	for _, c := range i.Stages[0].Commands {
		line := strings.Join(c.Args, " ")
		builds = builds || c.Name == "RUN" && strings.Contains(line, "CGO_ENABLED=0") && strings.Contains(line, "-o "+path.Join("/image", program))
	}
	if !builds {
		fail("no RUN of the first stage builds a static %s", path.Join("/image", program))
	}
	return errors.Join(errs...)
}
