package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/clidoc"
)

// appText introduces the program in its help and its man page.
const appText = `A node acquires a worker from ZooKeeper and makes 63-bit IDs by itself, sorted by
time: each holds the time, the worker and a sequence. Clients ask on TCP port 7609 in
plain lines, from any language, telnet or netcat.

Begin with:

  flaked serve --dev                        a node without ZooKeeper, to try it
  flaked serve --zk HOST:2181 --bootstrap   a node, and a new cluster if there is none
  flaked get 3                              three IDs from the node on this machine`

// configurationText describes the environment variables and the settings file.
const configurationText = `Every flag --foo-bar can also be given as FLAKED_FOO_BAR in the environment, or as
foo-bar: VALUE in a YAML file named by --config or FLAKED_CONFIG. One file serves all
commands. The command line overrides the environment, which overrides the file.
Secrets come only from files (--token-file, --zk-auth-file) or from the environment
(FLAKED_TOKEN, FLAKED_ZK_AUTH).`

// exitTexts are the exit codes for help and man pages.
var exitTexts = []struct {
	code int
	text string
}{
	{exitOK, "done, all is well"},
	{exitFailure, "failed, or the answer is no"},
	{exitUsage, "the command line, the environment or the file is wrong"},
	{exitUnreachable, "ZooKeeper, or the node asked, cannot be reached"},
	{exitDegraded, "done, but something needs attention"},
	{exitNotFollowed, "done, but not all nodes have followed the change"},
}

func exitCodesText() string {
	var b strings.Builder
	for _, e := range exitTexts {
		fmt.Fprintf(&b, "  %d  %s\n", e.code, e.text)
	}
	return b.String()
}

// appHelp returns the library's template for `flaked --help`.
func appHelp() string {
	about, begin, _ := strings.Cut(appText, "\n\nBegin with:\n\n")
	return "flaked - {{.Usage}}\n\n" + about + "\n\nBEGIN WITH\n" + indented(begin) + `
COMMANDS{{range .VisibleCommands}}
   {{.Name}}{{"\t"}}{{.Usage}}{{range .VisibleCommands}}
     {{.Name}}{{"\t"}}  {{.Usage}}{{end}}{{end}}

   flaked COMMAND --help   a command's flags, with examples

CONFIGURATION
` + indented("  "+strings.ReplaceAll(configurationText, "\n", "\n  ")) + "\nEXIT CODES\n" + indented(exitCodesText())
}

// indented moves lines one column to the right.
func indented(text string) string {
	return " " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n ") + "\n"
}

// Columns of a command's help.
const (
	helpFlagWidth = 26
	helpTextWidth = 62
)

// commandHelp returns what `flaked COMMAND --help` prints. The library's own help has one line
// for each flag, however long.
func commandHelp(path string, cmd *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s - %s\n\n", path, cmd.Usage)
	fmt.Fprintf(&b, "   %s\n", synopsis(path, cmd))
	if cmd.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(cmd.Description))
	}
	if len(cmd.Subcommands) > 0 {
		b.WriteString("\nCOMMANDS\n")
		for _, sub := range cmd.Subcommands {
			fmt.Fprintf(&b, "   %-9s %s\n", sub.Name, sub.Usage)
		}
		fmt.Fprintf(&b, "\n   %s COMMAND --help   a command's flags, with examples\n", path)
	}
	flags := describeFlags(cmd.Flags)
	for _, category := range clidoc.Categories(flags) {
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(strings.TrimSpace(category+" flags")))
		for _, f := range flags {
			if f.Category == category {
				b.WriteString(flagHelp(f))
			}
		}
	}
	if len(cmd.Flags) > 0 {
		b.WriteString("\nA flag --foo-bar is also FLAKED_FOO_BAR in the environment, or foo-bar: in the file\nthat --config names. See flaked --help.\n")
	}
	return b.String()
}

// synopsis returns a command's usage line.
func synopsis(path string, cmd *cli.Command) string {
	switch {
	case cmd.UsageText != "":
		return cmd.UsageText
	case len(cmd.Subcommands) > 0:
		return path + " COMMAND [flags]"
	}
	return strings.TrimSpace(path + " [flags] " + cmd.ArgsUsage)
}

var placeholder = regexp.MustCompile("`([^`]*)`")

// flagHelp returns a flag's name with its text wrapped beside or below it.
func flagHelp(f clidoc.Flag) string {
	left := ""
	for i := range f.Names { // the short form first
		left += ", " + clidoc.Dashed(f.Names[len(f.Names)-1-i])
	}
	left = strings.TrimPrefix(left, ", ")
	if f.Value != "" {
		left += " " + f.Value
	}
	lines := wrap(f.WithDefault(), helpTextWidth)
	if len(left) >= helpFlagWidth {
		left += "\n   " + strings.Repeat(" ", helpFlagWidth)
	} else {
		left += strings.Repeat(" ", helpFlagWidth-len(left))
	}
	return "   " + left + strings.Join(lines, "\n   "+strings.Repeat(" ", helpFlagWidth)) + "\n"
}

// wrap breaks a text between words into lines of at most width bytes, if each word fits.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
