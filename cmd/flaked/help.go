package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// appHelp is the library's template for `flaked --help`. It fits on one screen.
const appHelp = `flaked - {{.Usage}}

   flaked serve --dev                        a node without ZooKeeper, to try it
   flaked serve --zk HOST:2181 --bootstrap   a node, and a new cluster if there is none
   flaked get 3                              three IDs from the node on this machine

COMMANDS{{range .VisibleCommands}}
   {{.Name}}{{with .VisibleCommands}} {{range $i, $c := .}}{{if $i}}|{{end}}{{$c.Name}}{{end}}: {{else -}}
   {{"\t"}}{{end}}{{.Usage}}{{end}}

   flaked COMMAND --help   a command's flags, with examples
   flaked --version

A flag --foo-bar is also FLAKED_FOO_BAR in the environment, or foo-bar: VALUE in a YAML
file named by --config. The command line overrides the environment, which overrides the
file. One file serves all commands. Secrets come from files (--token-file, --zk-auth-file)
or from the environment (FLAKED_TOKEN, FLAKED_ZK_AUTH).

EXIT CODES
   0  done, all is well
   1  failed, or the answer is no
   2  the command line, the environment or the file is wrong
   3  ZooKeeper, or the node asked, cannot be reached
   4  done, but something needs attention
`

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
	var categories []string
	flags := map[string]string{}
	for _, f := range cmd.VisibleFlags() {
		category := f.(cli.CategorizableFlag).GetCategory()
		if !slices.Contains(categories, category) {
			categories = append(categories, category)
		}
		flags[category] += flagHelp(f.(cli.DocGenerationFlag))
	}
	// its own flags first
	slices.SortStableFunc(categories, func(a, b string) int { return min(len(a), 1) - min(len(b), 1) })
	for _, category := range categories {
		fmt.Fprintf(&b, "\n%s\n%s", strings.ToUpper(strings.TrimSpace(category+" flags")), flags[category])
	}
	if len(cmd.Flags) > 0 {
		b.WriteString("\nA flag --foo-bar is also FLAKED_FOO_BAR in the environment, or foo-bar: in the file\nthat " +
			"--config names. See flaked --help.\n")
	}
	return b.String()
}

func synopsis(path string, cmd *cli.Command) string {
	parts := []string{path}
	if cmd.ArgsUsage != "" {
		parts = append(parts, cmd.ArgsUsage)
	}
	switch {
	case len(cmd.Subcommands) > 0:
		parts = append(parts, "COMMAND")
	case len(cmd.Flags) > 0:
		parts = append(parts, "[flags]")
	}
	return strings.Join(parts, " ")
}

var placeholder = regexp.MustCompile("`([^`]*)`")

// flagHelp returns a flag's name with its text wrapped beside or below it.
func flagHelp(f cli.DocGenerationFlag) string {
	var names []string
	for _, name := range f.Names() { // the short form first
		names = append([]string{dashed(name)}, names...)
	}
	left, text := strings.Join(names, ", "), placeholder.ReplaceAllString(f.GetUsage(), "$1")
	if f.TakesValue() {
		value := map[string]string{"int": "N", "float64": "N", "duration": "DURATION", "string": "VALUE"}[typeOf(f)]
		if m := placeholder.FindStringSubmatch(f.GetUsage()); m != nil {
			value = m[1]
		}
		left += " " + value
		if fallback := strings.ReplaceAll(f.GetDefaultText(), `"`, ""); fallback != "" {
			text += " (default: " + fallback + ")"
		}
	}
	indent := "\n   " + strings.Repeat(" ", helpFlagWidth)
	if len(left) >= helpFlagWidth {
		left += indent
	} else {
		left += strings.Repeat(" ", helpFlagWidth-len(left))
	}
	return "   " + left + strings.Join(wrap(text, helpTextWidth), indent) + "\n"
}

// dashed returns a flag's name with its dashes: -o, --output.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
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
