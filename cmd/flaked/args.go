package main

import (
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"
)

// reorderArgs puts the flags of a command line before its arguments. The library reads flags only up to the first
// argument: in `flaked decode 123 -o json` it would take -o for an ID. `flaked help get` becomes `flaked get --help`.
func reorderArgs(commands []*cli.Command, args []string) []string {
	if len(args) == 0 {
		return []string{"flaked"}
	}
	out, rest := args[:1:1], args[1:]
	var cmd *cli.Command
	help := false
	for ; len(rest) > 0; rest = rest[1:] {
		if rest[0] == "help" && (cmd == nil || len(commands) > 0) {
			help = true
			continue
		}
		next := commandNamed(commands, rest[0])
		if next == nil {
			break
		}
		out, cmd, commands = append(out, next.Name), next, next.Subcommands
	}
	switch {
	case help && len(rest) == 0:
		return append(out, "--help")
	case cmd == nil || len(commands) > 0:
		return append(out, rest...)
	}
	flags, positional, help := splitArgs(cmd, rest)
	if help {
		// Beside --help, the library takes an argument for a help topic.
		return append(out, "--help")
	}
	out = append(out, flags...)
	if len(positional) > 0 {
		out = append(append(out, "--"), positional...)
	}
	return out
}

func commandNamed(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// negativeNumber matches the beginning of a negative number. -5 is an argument, not a flag, so that the
// command can refuse it and say what it expects.
var negativeNumber = regexp.MustCompile(`^-[0-9]`)

// splitArgs separates a command's flags, each with its value, from its arguments.
func splitArgs(cmd *cli.Command, args []string) (flags, positional []string, help bool) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return flags, append(positional, args[i+1:]...), help
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") || negativeNumber.MatchString(arg) {
			positional = append(positional, arg)
			continue
		}
		name, _, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		help = help || name == "help" || name == "h"
		switch {
		case assigned || !takesValue(cmd, name):
			flags = append(flags, arg)
		case i+1 < len(args):
			flags, i = append(flags, arg, args[i+1]), i+1
		default: // no value: an argument must not take its place
			return append(flags, arg), nil, help
		}
	}
	return flags, positional, help
}

func takesValue(cmd *cli.Command, name string) bool {
	f, ok := flagNamed(cmd.Flags, name).(cli.DocGenerationFlag)
	return ok && f.TakesValue()
}
