package main

import (
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/clidoc"
)

var shells = []string{"bash", "zsh", "fish"}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		UsageText: "flaked completion bash|zsh|fish",
		ArgsUsage: "bash|zsh|fish",
		Description: `Prints a script that has the shell complete commands, flags, files and the words
that flags take. The script knows the flaked that printed it, and starts none.

Examples:
  source <(flaked completion bash)                                          this shell only
  flaked completion bash > /etc/bash_completion.d/flaked                    bash, everybody
  flaked completion zsh > /usr/local/share/zsh/site-functions/_flaked       zsh, everybody
  flaked completion fish > ~/.config/fish/completions/flaked.fish           fish`,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || !slices.Contains(shells, c.Args().First()) {
				return usageError("which shell? %s", strings.Join(shells, ", "))
			}
			_, err := io.WriteString(c.App.Writer, completionScript(c.App, c.Args().First()))
			return err
		},
	}
}

func completionScript(app *cli.App, shell string) string {
	script := map[string]func(clidoc.Command) string{"bash": clidoc.Bash, "zsh": clidoc.Zsh, "fish": clidoc.Fish}[shell]
	return script(describe(app))
}
