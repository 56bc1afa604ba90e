package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/check/docs"
)

// flaked must accept every command line in the documents. internal/check/e2e runs those that can be run.
func TestCommandLinesOfDocuments(t *testing.T) {
	pages, err := docs.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	commands := helpExamples()
	for _, doc := range pages {
		if doc == "CHANGELOG.md" { // it names commands that were removed
			continue
		}
		more, err := docs.Read(root, doc)
		if err != nil {
			t.Error(err)
		}
		commands = append(commands, more...)
	}
	n := 0
	for _, c := range commands {
		for _, args := range c.Calls("flaked") {
			n++
			if err := understand(args); err != nil {
				t.Errorf("%s: %v", c, err)
			}
		}
	}
	if n < 100 {
		t.Errorf("%d command lines found", n)
	}
}

// helpExamples returns the examples in help texts, which are indented by two.
func helpExamples() (out []docs.Command) {
	example := regexp.MustCompile(`^  ((?:\S+ )*flaked [a-z].*?)(?:   .*)?$`)
	walk(newApp(nil, nil, nil).Commands, "flaked", func(path string, c *cli.Command) {
		for i, line := range strings.Split(c.CustomHelpTemplate, "\n") {
			if m := example.FindStringSubmatch(line); m != nil {
				out = append(out, docs.Command{Doc: path + " --help", Line: i + 1, Text: m[1]})
			}
		}
	})
	return out
}

// placeholders maps the placeholders in documents to values.
var placeholders = map[string]string{"N": "5", "ID": "5", "PID": "5", "$!": "5", "$(pidof flaked)": "5",
	"COMMAND": "get"}

// understand parses a command line as the program does, without running it.
func understand(args []string) error {
	line := []string{"flaked"}
	for _, arg := range args {
		if arg == "..." {
			continue
		}
		if own, ok := placeholders[arg]; ok {
			arg = own
		}
		line = append(line, arg)
	}
	app := newApp(strings.NewReader(""), io.Discard, io.Discard)
	disarm(app.Commands)
	return app.Run(reorderArgs(app.Commands, line))
}

func disarm(commands []*cli.Command) {
	for _, cmd := range commands {
		cmd.Before = nil
		if len(cmd.Subcommands) == 0 {
			cmd.Action = func(c *cli.Context) error {
				if c.NArg() > 0 && strings.TrimSpace(cmd.ArgsUsage) == "" {
					return usageError("unexpected argument %q", c.Args().First())
				}
				return nil
			}
		}
		disarm(cmd.Subcommands)
	}
}
