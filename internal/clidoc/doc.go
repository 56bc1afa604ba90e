// Package clidoc turns a description of a command line into man pages, completion scripts for
// bash, zsh and fish, and a reference in Markdown. It knows no command of its own.
//
// ToMan and ToMarkdown of urfave/cli 2 were tried in its place. They make one page of the whole
// program. They print flags without their groups and variables, and values as "", and leave
// out descriptions and examples. The library completes commands and flags in bash and zsh by running
// the program, but not the values of flags.
package clidoc

import "strings"

// Command is a program or one of its commands.
type Command struct {
	// Name is the last word of the command: serve, init.
	Name string
	// Summary is one line without a full stop: print new IDs.
	Summary string
	// Synopsis is the usage line: flaked get [flags] [N].
	Synopsis string
	// Text is the description, wrapped. Lines that begin with two spaces are examples or tables
	// and are not refilled. A line before these that ends with a colon is their heading.
	Text string
	// Help is the output of --help.
	Help string
	// Words are the possible values of the first argument. nil means any value.
	Words    []string
	Flags    []Flag
	Commands []Command
}

// Flag is one of a command's flags.
type Flag struct {
	// Names are without dashes, with the long name first.
	Names []string
	// Value is the placeholder of the value in texts, such as FILE. "" means no value.
	Value string
	// Text is one line. Default is the default as texts show it, "" to show none.
	Text, Default string
	// Category is the heading that lists the flag. "" means the command's own flags.
	Category string
	// Kind and Choices decide which values a shell offers. Kind counts only if Choices is empty.
	Kind    Kind
	Choices []string
	// Repeatable flags may be given more than once.
	Repeatable bool
}

// Kind is the kind of value of a flag, for completion in a shell.
type Kind int

const (
	// Any is the zero value: a shell offers Choices and nothing else.
	Any Kind = iota
	// File is the path of a file.
	File
	// Directory is the path of a directory.
	Directory
)

// Dashed returns name with the dashes that belong before it: -o, --output.
func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// walk calls f for c and then for every command below it. path holds the command's words
// without the program's name: "", "serve", "cluster init".
func walk(c Command, path string, f func(path string, c Command)) {
	f(path, c)
	for _, sub := range c.Commands {
		walk(sub, strings.TrimSpace(path+" "+sub.Name), f)
	}
}
