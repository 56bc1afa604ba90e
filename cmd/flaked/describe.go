package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/clidoc"
	"github.com/flaked/flaked/worker"
)

// describe describes the command line for man pages, shell completion and docs/cli.md.
func describe(app *cli.App) clidoc.Command {
	d := clidoc.Command{
		Name: app.Name, Summary: app.Usage, Synopsis: "flaked COMMAND [flags]",
		Text: appText, Flags: describeFlags(app.Flags),
	}
	var names []string
	for _, cmd := range app.VisibleCommands() {
		d.Commands = append(d.Commands, describeCommand("flaked", cmd))
		names = append(names, cmd.Name)
	}
	for i := range d.Commands {
		if d.Commands[i].Name == "man" {
			d.Commands[i].Words = names
		}
	}
	return d
}

func describeCommand(parent string, cmd *cli.Command) clidoc.Command {
	path := parent + " " + cmd.Name
	d := clidoc.Command{
		Name: cmd.Name, Summary: cmd.Usage, Synopsis: synopsis(path, cmd),
		Text: strings.TrimSpace(cmd.Description), Help: commandHelp(path, cmd),
		Words: argumentWords[path], Flags: describeFlags(cmd.Flags),
	}
	for _, sub := range cmd.Subcommands {
		if !sub.Hidden {
			d.Commands = append(d.Commands, describeCommand(path, sub))
		}
	}
	return d
}

func describeFlags(flags []cli.Flag) []clidoc.Flag {
	var out []clidoc.Flag
	for _, f := range flags {
		if d, ok := describeFlag(f); ok {
			out = append(out, d)
		}
	}
	return out
}

// describeFlag returns false for a hidden flag.
func describeFlag(f cli.Flag) (clidoc.Flag, bool) {
	doc, ok := f.(cli.DocGenerationFlag)
	if v, can := f.(cli.VisibleFlag); !ok || can && !v.IsVisible() {
		return clidoc.Flag{}, false
	}
	d := clidoc.Flag{Names: f.Names(), Text: placeholder.ReplaceAllString(doc.GetUsage(), "$1")}
	if c, ok := f.(cli.CategorizableFlag); ok {
		d.Category = c.GetCategory()
	}
	if !doc.TakesValue() {
		return d, true
	}
	d.Value = valueNames[kindOf(f)]
	if m := placeholder.FindStringSubmatch(doc.GetUsage()); m != nil {
		d.Value = m[1]
	}
	d.Default = strings.ReplaceAll(doc.GetDefaultText(), `"`, "")
	switch d.Value {
	case "FILE":
		d.Kind = clidoc.File
	case "DIRECTORY":
		d.Kind = clidoc.Directory
	}
	d.Choices = flagChoices(d)
	if slice, ok := f.(cli.DocGenerationSliceFlag); ok {
		d.Repeatable = slice.IsSliceFlag()
	}
	return d, true
}

// valueNames are the placeholders of flags whose text has none, by kindOf.
var valueNames = map[string]string{"int": "N", "float64": "N", "duration": "DURATION", "string": "VALUE"}

// choices are the values of flags by their names, for completion. Flags of several commands
// share a name, so a flag offers only the values that its text names.
var choices = map[string][]string{
	"output":         {formatTable, formatWide, formatJSON},
	"log-level":      {"trace", "debug", "info", "warn", "error", "off"},
	"log-format":     {"auto", "text", "json"},
	"engine":         {"auto", "loops", "goroutines"},
	"sequence-start": {"random", "zero", "carry-on"},
	"on-rollback":    {"leaf", "refuse", "wait", "coast", "rollback-bits"},
	"segment-start":  {"zero", "random"},
	"layout":         layoutNames(),
	"kind":           {"snowflake", "uuid4", "uuid7"},
	"format":         strings.Split(encodingNames(), ", "),
	"state":          clusterview.States(),
	"max":            strings.Split(maxWords(), ", "),
}

func flagChoices(f clidoc.Flag) (out []string) {
	for _, choice := range choices[f.Names[0]] {
		if f.Names[0] == "layout" || strings.Contains(f.Text, choice) {
			out = append(out, choice)
		}
	}
	return out
}

// argumentWords are the values that the first argument of a command can have.
var argumentWords = map[string][]string{
	"flaked completion":  shells,
	"flaked layout show": layoutNames(),
}

func layoutNames() []string {
	var names []string
	for _, l := range worker.Presets() {
		names = append(names, l.Name)
	}
	return names
}
