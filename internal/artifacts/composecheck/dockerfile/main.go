// Command dockerfile parses Dockerfiles by BuildKit's own parser and prints their
// contents, for the tests of internal/artifacts/composecheck. It is a module of its own, so that
// flaked does not depend on BuildKit.
//
//	dockerfile FILE...    one JSON document a file
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// image is a parsed Dockerfile. composecheck.Image has the same fields.
type image struct {
	Error    string   `json:"error,omitempty"` // why BuildKit refuses it
	Warnings []string `json:"warnings,omitempty"`
	Stages   []stage  `json:"stages,omitempty"`
}

type stage struct {
	Name     string    `json:"name"`
	Base     string    `json:"base"`
	Commands []command `json:"commands"`
}

type command struct {
	Name string `json:"name"`
	// Args holds the arguments of the exec form, or the one line of the shell form. COPY
	// has its sources and its destination here. ENV and ARG have name=value.
	Args  []string `json:"args"`
	Shell bool     `json:"shell,omitempty"`
	From  string   `json:"from,omitempty"`
	Owner string   `json:"owner,omitempty"`
}

func main() {
	enc := json.NewEncoder(os.Stdout)
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		if err == nil {
			err = enc.Encode(read(data))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "dockerfile:", err)
			os.Exit(1)
		}
	}
}

func read(data []byte) (out image) {
	ast, err := parser.Parse(bytes.NewReader(data))
	if err != nil {
		out.Error = err.Error()
		return out
	}
	for _, w := range ast.Warnings {
		out.Warnings = append(out.Warnings, w.Short)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
		out.Warnings = append(out.Warnings, rule+": "+message)
	}})
	stages, _, err := instructions.Parse(ast.AST, lint)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	for _, s := range stages {
		read := stage{Name: s.Name, Base: s.BaseName}
		for _, c := range s.Commands {
			one, err := readCommand(c)
			if err != nil {
				out.Error = err.Error()
				return out
			}
			read.Commands = append(read.Commands, one)
		}
		out.Stages = append(out.Stages, read)
	}
	return out
}

func readCommand(c instructions.Command) (command, error) {
	out := command{Name: strings.ToUpper(c.Name())}
	switch c := c.(type) {
	case *instructions.RunCommand:
		out.Args, out.Shell = c.CmdLine, c.PrependShell
	case *instructions.CmdCommand:
		out.Args, out.Shell = c.CmdLine, c.PrependShell
	case *instructions.EntrypointCommand:
		out.Args, out.Shell = c.CmdLine, c.PrependShell
	case *instructions.CopyCommand:
		out.Args, out.From, out.Owner = append(c.SourcePaths, c.DestPath), c.From, c.Chown
	case *instructions.UserCommand:
		out.Args = []string{c.User}
	case *instructions.WorkdirCommand:
		out.Args = []string{c.Path}
	case *instructions.ExposeCommand:
		out.Args = c.Ports
	case *instructions.StopSignalCommand:
		out.Args = []string{c.Signal}
	case *instructions.EnvCommand:
		for _, e := range c.Env {
			out.Args = append(out.Args, e.Key+"="+e.Value)
		}
	case *instructions.ArgCommand:
		for _, a := range c.Args {
			out.Args = append(out.Args, a.Key+"="+a.ValueString())
		}
	case *instructions.HealthCheckCommand:
		if c.Health == nil || len(c.Health.Test) == 0 {
			return out, errors.New("HEALTHCHECK without a command")
		}
		out.Args, out.Shell = c.Health.Test[1:], c.Health.Test[0] != "CMD"
	default:
		return out, fmt.Errorf("%s is not among what is read here", out.Name)
	}
	return out, nil
}
