// Package clidoc makes of a description of a command line what people and
// shells read of it: man pages, completion for bash, zsh and fish, a reference
// in Markdown. It knows no command of its own.
package clidoc

import "strings"

// Command is a program or one of its commands.
type Command struct {
	// Name is its last word: serve, init.
	Name string
	// Summary is one line: print new IDs.
	Summary string
	// Synopsis is how it is called: flaked get [flags] [N].
	Synopsis string
	// Text describes it, wrapped. Lines that begin with two blanks are examples
	// or tables, and stay as they are. A line alone that ends with a colon
	// is a heading of them.
	Text string
	// Help is what --help prints.
	Help string
	// Words are what its first argument can be; nil when that is anything.
	Words    []string
	Flags    []Flag
	Commands []Command
}

// Flag is one of a command's flags.
type Flag struct {
	// Names are without dashes, the long one first.
	Names []string
	// Value is what stands for its value in texts; "" when it takes none.
	Value string
	// Text is one line, Default its default for people.
	Text, Default string
	// Category is a heading; "" for a command's own.
	Category string
	// Kind and Choices are what a shell offers for the value.
	Kind    Kind
	Choices []string
	// Repeatable: it may be given more than once.
	Repeatable bool
}

// Kind is what a flag's value is, for a shell.
type Kind int

const (
	// Any value: nothing can be offered but Choices.
	Any Kind = iota
	// File is a path.
	File
	// Directory is a path of one.
	Directory
)

// dashed is a flag's name as people write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// walk calls f with a command and all below it, each with its words without
// the program's name: "", "serve", "cluster init".
func walk(c Command, path string, f func(path string, c Command)) {
	f(path, c)
	for _, sub := range c.Commands {
		walk(sub, strings.TrimSpace(path+" "+sub.Name), f)
	}
}
