package main

import (
	"io"

	"github.com/urfave/cli/v2"
)

// completions maps a shell to its script. Each asks the program for the words that can follow.
var completions = map[string]string{
	"bash": `_flaked() {
  local cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ $cur == -* ]] && words+=("$cur")
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o bashdefault -o default -F _flaked flaked
`,
	"zsh": `#compdef flaked
_flaked() {
  local cur=${words[CURRENT]} line=(${words[@]:0:$((CURRENT - 1))})
  [[ $cur == -* ]] && line+=($cur)
  compadd -- ${(f)"$($line --generate-bash-completion 2>/dev/null)"} || _files
}
if [[ $funcstack[1] == _flaked ]]; then _flaked "$@"; else compdef _flaked flaked; fi
`,
	"fish": `complete -c flaked -a '(set -l line (commandline -opc)
  string match -q -- "-*" (commandline -ct); and set -a line (commandline -ct)
  command $line --generate-bash-completion 2>/dev/null)'
`,
}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: `Prints a script with which the shell completes commands and flags. The script runs
flaked to find them.

Examples:
  source <(flaked completion bash)                                          this shell only
  flaked completion bash > /etc/bash_completion.d/flaked                    bash, all users
  flaked completion zsh > /usr/local/share/zsh/site-functions/_flaked       zsh, all users
  flaked completion fish > ~/.config/fish/completions/flaked.fish           fish`,
		Action: func(c *cli.Context) error {
			script := completions[c.Args().First()]
			if c.NArg() != 1 || script == "" {
				return usageError("expected one shell: bash, zsh, fish")
			}
			_, err := io.WriteString(c.App.Writer, script)
			return err
		},
	}
}
