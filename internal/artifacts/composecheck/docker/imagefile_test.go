package docker

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// repository is flaked's directory, seen from this one.
const repository = "../../../.."

// program is the path of flaked in the image.
const program = "/usr/local/bin/flaked"

// serviceUser matches a user and a group other than root, in numbers. The image has no
// file of user names, and Kubernetes' runAsNonRoot accepts only numbers.
var serviceUser = regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`)

// parse returns the stages of a Dockerfile. Warnings of BuildKit are errors.
func parse(text []byte) ([]instructions.Stage, error) {
	ast, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, w := range ast.Warnings {
		errs = append(errs, fmt.Errorf("BuildKit warns: %s", w.Short))
	}
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
		errs = append(errs, fmt.Errorf("BuildKit warns: %s: %s", rule, message))
	}})
	stages, _, err := instructions.Parse(ast.AST, lint)
	return stages, errors.Join(append(errs, err)...)
}

// arguments returns the words of an instruction, or the one line of its shell form.
func arguments(c instructions.Command) (args []string, shell bool) {
	switch c := c.(type) {
	case *instructions.RunCommand:
		return c.CmdLine, c.PrependShell
	case *instructions.CmdCommand:
		return c.CmdLine, c.PrependShell
	case *instructions.EntrypointCommand:
		return c.CmdLine, c.PrependShell
	case *instructions.HealthCheckCommand:
		return c.Health.Test[1:], c.Health.Test[0] != "CMD"
	case *instructions.UserCommand:
		return []string{c.User}, false
	case *instructions.StopSignalCommand:
		return []string{c.Signal}, false
	}
	return nil, false
}

// checkDockerfile returns all mistakes in a Dockerfile, joined, or nil.
func checkDockerfile(text []byte) error {
	stages, err := parse(text)
	if err != nil {
		return err
	}
	if len(stages) < 2 {
		return fmt.Errorf("%d stages: one builds, another is the image", len(stages))
	}
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		fail("the image begins with %s, not with scratch", last.BaseName)
	}
	is, owner := map[string][]string{}, ""
	for _, c := range last.Commands {
		args, shell := arguments(c)
		is[c.Name()] = args
		// The last stage begins from scratch, so it has no shell.
		if shell || c.Name() == "RUN" {
			fail("%s %q: there is no shell in the image", c.Name(), args)
		}
		if c, ok := c.(*instructions.CopyCommand); ok {
			owner = c.Chown
			if !slices.ContainsFunc(stages[:len(stages)-1], func(s instructions.Stage) bool { return s.Name == c.From }) {
				fail("COPY --from=%s: there is no such stage before it", c.From)
			}
		}
	}
	only := func(name string, want ...string) {
		if got := is[name]; !slices.Equal(got, want) {
			fail("%s %q, want %q", name, got, want)
		}
	}
	only("ENTRYPOINT", program)
	only("CMD", "serve")
	only("HEALTHCHECK", program, "healthcheck")
	only("STOPSIGNAL", "SIGTERM")
	user := strings.Join(is["USER"], " ")
	if !serviceUser.MatchString(user) {
		fail("USER %q: not a user and a group in numbers, other than root", user)
	}
	if owner != user {
		fail("COPY --chown=%s: not the user, %s: the state directory could not be written", owner, user)
	}
	builds := func(c instructions.Command) bool {
		args, _ := arguments(c)
		line := strings.Join(args, " ")
		return c.Name() == "RUN" && strings.Contains(line, "CGO_ENABLED=0") && strings.Contains(line, "-o /image"+program)
	}
	if !slices.ContainsFunc(stages[0].Commands, builds) {
		fail("no RUN of the first stage builds a static /image%s", program)
	}
	return errors.Join(errs...)
}
