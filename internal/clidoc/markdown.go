package clidoc

import (
	"fmt"
	"strings"
)

// Markdown returns a reference of the program: intro, a list of the commands, and their help.
func Markdown(program Command, intro string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands of %s\n\n%s\n\n", program.Name, strings.TrimSpace(intro))
	walk(program, "", func(path string, c Command) {
		if path == "" {
			return
		}
		words := strings.Fields(path)
		title := program.Name + " " + path
		fmt.Fprintf(&b, "%s- [%s](#%s): %s\n", strings.Repeat("  ", len(words)-1), title, strings.ReplaceAll(title, " ", "-"), c.Summary)
	})
	walk(program, "", func(path string, c Command) {
		if path == "" {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n```\n", program.Name+" "+path, strings.Trim(c.Help, "\n"))
	})
	return b.String()
}
