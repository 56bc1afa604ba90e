package main

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// watchDefault is the interval of a --watch that is given none.
const watchDefault = "2s"

// arrange makes of a command line as people type it one that the library
// reads: it stops at the first argument that is no flag, so that in
// `flaked decode 123 -o json` the format would be an ID. `flaked help get`
// becomes `flaked get --help`, and a --watch without an interval gets one.
func arrange(commands []*cli.Command, args []string) []string {
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
		next := find(commands, rest[0])
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
	flags, positional, help := split(cmd, rest)
	if help {
		return append(out, "--help") // the library takes arguments beside it for topics
	}
	out = append(out, flags...)
	if len(positional) > 0 {
		out = append(append(out, "--"), positional...)
	}
	return out
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// number begins an argument that is a number and no flag: -5 is for the
// command to refuse, who knows what was expected.
var number = regexp.MustCompile(`^-[0-9]`)

// split takes a command's flags, each with its value, and the arguments apart.
func split(cmd *cli.Command, args []string) (flags, positional []string, help bool) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return flags, append(positional, args[i+1:]...), help
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") || number.MatchString(arg) {
			positional = append(positional, arg)
			continue
		}
		name, _, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		help = help || name == "help" || name == "h"
		switch {
		case assigned || !takesValue(cmd, name):
			flags = append(flags, arg)
		case name == "watch":
			interval := watchDefault
			if i+1 < len(args) {
				if d, ok := parseInterval(args[i+1]); ok {
					interval, i = d, i+1
				}
			}
			flags = append(flags, arg+"="+interval)
		case i+1 < len(args):
			flags, i = append(flags, arg, args[i+1]), i+1
		default: // its value is missing: nothing may stand where it belongs
			return append(flags, arg), nil, help
		}
	}
	return flags, positional, help
}

func takesValue(cmd *cli.Command, name string) bool {
	for _, f := range cmd.Flags {
		for _, n := range f.Names() {
			if doc, ok := f.(cli.DocGenerationFlag); ok && n == name {
				return doc.TakesValue()
			}
		}
	}
	return false
}

// parseInterval reads 2s, 500ms, or 2 for seconds.
func parseInterval(s string) (string, bool) {
	if _, err := strconv.ParseUint(s, 10, 16); err == nil {
		return s + "s", true
	}
	_, err := time.ParseDuration(s)
	return s, err == nil
}
