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
		Description: `Prints a script with which the shell completes commands, flags, files and the values
of flags. The script matches the flaked that printed it, and does not run flaked.

Examples:
  source <(flaked completion bash)                                          this shell only
  flaked completion bash > /etc/bash_completion.d/flaked                    bash, all users
  flaked completion zsh > /usr/local/share/zsh/site-functions/_flaked       zsh, all users
  flaked completion fish > ~/.config/fish/completions/flaked.fish           fish`,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || !slices.Contains(shells, c.Args().First()) {
				return usageError("expected one shell: %s", strings.Join(shells, ", "))
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
