package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// appHelp is what `flaked --help` prints.
const appHelp = `flaked - {{.Usage}}

A node takes a worker number from ZooKeeper and makes IDs of it by itself: 63 bits
of time, worker and sequence that sort by the time of their making. Ask on TCP
port 7609 in plain lines, from any language, telnet or netcat.

BEGIN WITH
   flaked serve --dev                        a node without ZooKeeper, to look around
   flaked serve --zk HOST:2181 --bootstrap   a node, and the cluster if there is none
   flaked get 3                              three IDs from the node on this machine

COMMANDS{{range .VisibleCommands}}
   {{.Name}}{{"\t"}}{{.Usage}}{{range .Subcommands}}
     {{.Name}}{{"\t"}}  {{.Usage}}{{end}}{{end}}

   flaked COMMAND --help   a command's flags, with examples

CONFIGURATION
   Every flag --foo-bar can also be given as FLAKED_FOO_BAR in the environment, or as
   foo-bar: VALUE in a YAML file named by --config or FLAKED_CONFIG; one file serves all
   commands. What is on the command line goes first, then the environment, then the file.
   Secrets come from files (--token-file, --zk-auth-file) or the environment (FLAKED_TOKEN,
   FLAKED_ZK_AUTH) alone.

EXIT CODES
   0  done, all is well
   1  failed, or the answer is no
   2  the command line, the environment or the file is wrong
   3  ZooKeeper, or the node asked, cannot be reached
   4  it works, but something needs looking after
`

// Columns of a command's help.
const (
	helpFlagWidth = 26
	helpTextWidth = 62
)

// commandHelp is what `flaked COMMAND --help` prints. The library's own is a
// line for each flag, as long as it takes.
func commandHelp(path string, cmd *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s - %s\n\n", path, cmd.Usage)
	usage := cmd.UsageText
	switch {
	case usage == "" && len(cmd.Subcommands) > 0:
		usage = path + " COMMAND [flags]"
	case usage == "":
		usage = path + " [flags]"
	}
	fmt.Fprintf(&b, "   %s\n", usage)
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
	for _, category := range categories(cmd.Flags) {
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(strings.TrimSpace(category+" flags")))
		for _, f := range cmd.Flags {
			if categoryOf(f) == category {
				b.WriteString(flagHelp(f))
			}
		}
	}
	if len(cmd.Flags) > 0 {
		b.WriteString("\nA flag --foo-bar is also FLAKED_FOO_BAR in the environment, or foo-bar: in the file\nthat --config names. See flaked --help.\n")
	}
	return b.String()
}

// categories are those of the flags, none first.
func categories(flags []cli.Flag) []string {
	var out []string
	for _, f := range flags {
		if c := categoryOf(f); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return min(len(a), 1) - min(len(b), 1) })
	return out
}

func categoryOf(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok {
		return c.GetCategory()
	}
	return ""
}

var placeholder = regexp.MustCompile("`([^`]*)`")

// flagHelp is a flag's name, then its text wrapped beside or below it.
func flagHelp(f cli.Flag) string {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	left, names := "", f.Names()
	for i := range names { // the short form first
		left += ", " + dashed(names[len(names)-1-i])
	}
	left = strings.TrimPrefix(left, ", ")
	usage := doc.GetUsage()
	if doc.TakesValue() {
		value := valueOf(f)
		if m := placeholder.FindStringSubmatch(usage); m != nil {
			value = m[1]
		}
		left += " " + value
		if text := strings.ReplaceAll(doc.GetDefaultText(), `"`, ""); text != "" {
			usage += " (default: " + text + ")"
		}
	}
	usage = placeholder.ReplaceAllString(usage, "$1")
	lines := wrap(usage, helpTextWidth)
	if len(left) >= helpFlagWidth {
		left += "\n   " + strings.Repeat(" ", helpFlagWidth)
	} else {
		left += strings.Repeat(" ", helpFlagWidth-len(left))
	}
	return "   " + left + strings.Join(lines, "\n   "+strings.Repeat(" ", helpFlagWidth)) + "\n"
}

// valueOf is a flag's placeholder where its text names none.
func valueOf(f cli.Flag) string {
	switch f.(type) {
	case *cli.DurationFlag:
		return "DURATION"
	case *cli.IntFlag, *cli.Int64Flag, *cli.UintFlag, *cli.Uint64Flag, *cli.Float64Flag:
		return "N"
	}
	return "VALUE"
}

// wrap breaks a text between words.
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
