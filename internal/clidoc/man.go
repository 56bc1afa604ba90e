package clidoc

import (
	"fmt"
	"slices"
	"strings"
)

// Section is a section that all man pages of a program share.
type Section struct {
	Title, Text string
}

// Man returns the man page of one of program's commands: "serve", or "" for the program itself.
// Commands below that one become sections of the page. ok is false if there is no such command.
func Man(program Command, command string, common []Section) (page string, ok bool) {
	c, ok := program, command == ""
	if i := slices.IndexFunc(program.Commands, func(s Command) bool { return s.Name == command }); i >= 0 {
		c, ok = program.Commands[i], true
	}
	if !ok {
		return "", false
	}
	title := ManName(program, command)
	var b strings.Builder
	fmt.Fprintf(&b, ".\\\" Generated: see CONTRIBUTING.md.\n.TH %s 1 \"\" \"%s\" \"User Commands\"\n", roffQuoted(strings.ToUpper(title)), program.Name)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", roff(title), roff(c.Summary))
	synopses(&b, c)
	if c.Text != "" {
		b.WriteString(".SH DESCRIPTION\n")
		prose(&b, c.Text)
	}
	if command == "" {
		manCommands(&b, program)
	} else {
		manSections(&b, program.Name, c)
	}
	for _, s := range common {
		fmt.Fprintf(&b, ".SH %s\n", roffQuoted(strings.ToUpper(s.Title)))
		prose(&b, s.Text)
	}
	seeAlso(&b, program, command)
	return b.String(), true
}

// ManName returns the name of a command's man page: flaked, flaked-serve.
func ManName(program Command, command string) string {
	if command == "" {
		return program.Name
	}
	return program.Name + "-" + command
}

func synopses(b *strings.Builder, c Command) {
	if len(c.Commands) == 0 {
		fmt.Fprintf(b, ".nf\n%s\n.fi\n", roff(c.Synopsis))
		return
	}
	for i, sub := range c.Commands {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(b, "%s\n", roff(sub.Synopsis))
	}
}

// manCommands writes the list of all commands, for the program's own page.
func manCommands(b *strings.Builder, program Command) {
	b.WriteString(".SH COMMANDS\n")
	walk(program, "", func(path string, c Command) {
		if path != "" {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(program.Name+" "+path), roff(c.Summary))
		}
	})
}

// manSections writes the options of c, and a section for each command below c.
func manSections(b *strings.Builder, parent string, c Command) {
	options(b, ".SH", c)
	for _, sub := range c.Commands {
		fmt.Fprintf(b, ".SH %s\n", roffQuoted(strings.ToUpper(parent+" "+c.Name+" "+sub.Name)))
		prose(b, strings.ToUpper(sub.Summary[:1])+sub.Summary[1:]+".")
		b.WriteString(".PP\n")
		prose(b, sub.Text)
		options(b, ".SS", sub)
	}
}

func options(b *strings.Builder, macro string, c Command) {
	for _, category := range Categories(c.Flags) {
		title := category + " options"
		if category == "" {
			title = "Options"
		}
		if macro == ".SH" {
			title = strings.ToUpper(title)
		}
		fmt.Fprintf(b, "%s %s\n", macro, roffQuoted(title))
		for _, f := range c.Flags {
			if f.Category != category {
				continue
			}
			names := make([]string, len(f.Names))
			for i, n := range f.Names {
				names[len(names)-1-i] = `\fB` + roff(Dashed(n)) + `\fR`
			}
			left := strings.Join(names, ", ")
			if f.Value != "" {
				left += ` \fI` + roff(f.Value) + `\fR`
			}
			fmt.Fprintf(b, ".TP\n%s\n%s\n", left, roff(f.WithDefault()))
		}
	}
}

// WithDefault returns the flag's text followed by its default, if any.
func (f Flag) WithDefault() string {
	if f.Default == "" {
		return f.Text
	}
	return f.Text + " (default: " + f.Default + ")"
}

// Categories returns the categories of flags in order of appearance, but "" first.
func Categories(flags []Flag) []string {
	var out []string
	for _, f := range flags {
		if !slices.Contains(out, f.Category) {
			out = append(out, f.Category)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return min(len(a), 1) - min(len(b), 1) })
	return out
}

func seeAlso(b *strings.Builder, program Command, command string) {
	var pages []string
	for _, c := range append([]Command{{}}, program.Commands...) {
		if c.Name != command {
			pages = append(pages, fmt.Sprintf(".BR %s (1)", roff(ManName(program, c.Name))))
		}
	}
	fmt.Fprintf(b, ".SH \"SEE ALSO\"\n%s\n", strings.Join(pages, ",\n"))
}

// prose writes text in the form that Command.Text describes. roff refills paragraphs and leaves
// indented lines as they are.
func prose(b *strings.Builder, text string) {
	verbatim, blank, begun := false, false, false
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		line = strings.TrimRight(line, " \n")
		if line == "" {
			blank = true
			continue
		}
		switch indented := strings.HasPrefix(line, "  "); {
		case indented && !verbatim:
			b.WriteString(".PP\n.nf\n.RS 4\n")
		case !indented && verbatim:
			b.WriteString(".RE\n.fi\n.PP\n")
		case blank && verbatim:
			b.WriteString(".sp\n")
		case blank && begun:
			b.WriteString(".PP\n")
		}
		verbatim, blank, begun = strings.HasPrefix(line, "  "), false, true
		b.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
	}
	if verbatim {
		b.WriteString(".RE\n.fi\n")
	}
}

// roff returns s with everything escaped that roff would interpret.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

// roffQuoted returns s as a quoted argument of a roff macro.
func roffQuoted(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }
