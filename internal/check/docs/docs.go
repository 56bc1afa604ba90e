// Package docs finds the commands in the documents. internal/check/e2e runs these commands
// and cmd/flaked parses them. The tests of this package check the links.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Command is one command line of a document.
type Command struct {
	// Doc is the document's path relative to the root of the repository: README.md.
	Doc  string
	Line int // first line, from 1
	// Text has all lines of the command, without a prompt and without a comment at the end.
	Text string
	// Output is the output that the document shows for the command. It is "" if none follows.
	Output string
	// Inline commands stand between backquotes in a sentence.
	Inline bool
}

func (c Command) String() string { return fmt.Sprintf("%s:%d: %s", c.Doc, c.Line, c.Text) }

// Program returns the base name of the command's first word.
func (c Command) Program() string {
	word, _, _ := strings.Cut(c.Text, " ")
	return filepath.Base(word)
}

// programs are the programs that documents call. In a block of shell code, Parse returns an
// error for a first line that looks like a command and starts with neither a program nor prose.
var programs = []string{
	"apt", "apt-get", "chmod", "chown", "cd", "curl", "docker", "dpkg", "echo", "editor", "eval", "export",
	"flaked", "for", "git", "go",
	"helm", "install", "journalctl", "kill", "kubectl", "make", "mkdir", "nc", "node", "npm", "openssl",
	"printf", "python3", "redis-cli", "rm",
	"run", "runuser", "sha256sum", "sudo", "systemctl", "systemd-sysusers", "taskset", "telnet", "until",
	"zk-dev.sh", "zkCli.sh",
}

// prose lists the beginnings of blocks that look like commands but are something else: rules,
// grammars, lines of a report.
var prose = []string{
	"floor <= timestamp",      // design.md: a rule
	"request  =", "verb     ", // protocol.md: grammar
	"listen flaked", // deploy.md: HAProxy
}

var (
	// Names of programs in lower case. A colon or comma after the first word means YAML or Go.
	looksLikeCommand = regexp.MustCompile(`^(\./)?[a-z][a-z0-9_./-]*(\s|$)`)
	comment          = regexp.MustCompile(`(^|\s+)#\s.*$`)
	loopEnd          = regexp.MustCompile(`[\n ]done( |$)`)
	inline           = regexp.MustCompile("`+([^`]+)`+")
)

// Files returns the paths of the repository's documents, relative to root and sorted.
func Files(root string) ([]string, error) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "deploy/*.md",
		"deploy/*/*.md"} {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return files, nil
}

// Read returns the commands of a document, in the document's order.
func Read(root, doc string) ([]Command, error) {
	text, err := os.ReadFile(filepath.Join(root, doc))
	if err != nil {
		return nil, err
	}
	return Parse(doc, string(text))
}

// Parse does the same for a text. The commands carry doc as their document. A code block that
// begins with an unknown program is an error.
func Parse(doc, text string) ([]Command, error) {
	var commands []Command
	for _, b := range blocks(text) {
		if !b.code {
			commands = append(commands, spans(doc, b)...)
			continue
		}
		found, err := b.commands(doc)
		if err != nil {
			return nil, err
		}
		commands = append(commands, found...)
	}
	return commands, nil
}

// Blocks returns the code blocks of text, whatever their language. Each ends with a newline.
func Blocks(text string) []string {
	var out []string
	for _, b := range blocks(text) {
		if b.code {
			out = append(out, strings.Join(b.lines, "\n")+"\n")
		}
	}
	return out
}

// block is a run of lines that are all code, or all text between code.
type block struct {
	code bool
	// lang is the language of a fence, "sh" if the fence names none, and "" for an indented block.
	lang  string
	start int // first line, from 1
	lines []string
}

// blocks splits text into code and text between code. It knows as much of Markdown as the
// documents use: fences, and lines that are indented by four spaces or more. An indented line
// is code if it follows a blank line or code. Text that continues a list item must therefore be
// indented by fewer than four spaces.
func blocks(text string) []block {
	var out []block
	lines := strings.Split(text, "\n")
	add := func(code bool, start int, line string) {
		if n := len(out); n > 0 && out[n-1].code == code && out[n-1].lang == "" {
			out[n-1].lines = append(out[n-1].lines, line)
			return
		}
		out = append(out, block{code: code, start: start, lines: []string{line}})
	}
	blank := true
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			b := block{code: true, lang: rest, start: i + 2}
			if b.lang == "" {
				b.lang = "sh"
			}
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
				b.lines = append(b.lines, lines[i])
			}
			out, blank = append(out, b), true
			continue
		}
		last := len(out) - 1
		inCode := last >= 0 && out[last].code && out[last].lang == ""
		indented := strings.HasPrefix(line, "    ")
		switch {
		case strings.TrimSpace(line) == "":
			blank = true
			add(inCode, i+1, "")
			continue
		case indented && (blank || inCode):
			add(true, i+1, line)
		default:
			add(false, i+1, line)
		}
		blank = false
	}
	for i := range out {
		if out[i].code {
			out[i].lines = dedent(out[i].lines)
		}
	}
	return out
}

func dedent(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	indent := -1
	for _, line := range lines {
		if n := len(line) - len(strings.TrimLeft(line, " ")); line != "" && (indent < 0 || n < indent) {
			indent = n
		}
	}
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line[min(max(indent, 0), len(line)):]
	}
	return out
}

func (b block) commands(doc string) ([]Command, error) {
	switch {
	case b.lang != "" && b.lang != "sh" && b.lang != "bash" && b.lang != "console" && b.lang != "shell":
		return nil, nil
	case len(b.lines) == 0:
		return nil, nil
	case strings.HasPrefix(b.lines[0], "$ "):
		return b.transcript(doc), nil
	}
	var out []Command
	output := false // lines belong to the last command's output
	for i := 0; i < len(b.lines); i++ {
		line := b.lines[i]
		if i == 0 || b.lines[i-1] == "" {
			head := b.head(i)
			known := looksLikeCommand.MatchString(head) && slices.Contains(programs, Command{Text: head}.Program())
			if i == 0 && !known && looksLikeCommand.MatchString(head) &&
				!slices.ContainsFunc(prose, func(p string) bool { return strings.HasPrefix(head, p) }) {
				return nil, fmt.Errorf("%s:%d: is %q a command, or not? Add its program or its beginning to "+
					"internal/check/docs", doc, b.start+i, head)
			}
			if i == 0 && !known {
				return nil, nil // a file, or another transcript
			}
			output = !known
		}
		if output {
			out[len(out)-1].Output += line + "\n"
			continue
		}
		start, text := i, line
		for i+1 < len(b.lines) && (strings.HasSuffix(text, `\`) || unfinished(text)) {
			i++
			text += "\n" + b.lines[i]
		}
		text = strings.TrimSpace(comment.ReplaceAllString(text, ""))
		if text != "" {
			out = append(out, Command{Doc: doc, Line: b.start + start, Text: text})
		}
	}
	return out, nil
}

// head returns the first line from line i on that is not a comment, or "".
func (b block) head(i int) string {
	for _, line := range b.lines[i:] {
		if !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

// unfinished reports whether text begins a for loop and does not end it.
func unfinished(text string) bool {
	return strings.HasPrefix(text, "for ") && !loopEnd.MatchString(text)
}

// transcript returns the commands of a block with prompts. Lines without a prompt are output.
func (b block) transcript(doc string) []Command {
	var out []Command
	for i, line := range b.lines {
		if text, ok := strings.CutPrefix(line, "$ "); ok {
			out = append(out, Command{Doc: doc, Line: b.start + i,
				Text: strings.TrimSpace(comment.ReplaceAllString(text, ""))})
			continue
		}
		out[len(out)-1].Output += line + "\n"
	}
	return out
}

// spans returns the commands between backquotes. A command may go on in the next line, but not in
// the next paragraph. It must run flaked, make, or a file in scripts or examples, with an argument.
func spans(doc string, b block) []Command {
	var out []Command
	line := b.start
	for _, paragraph := range strings.Split(strings.Join(b.lines, "\n"), "\n\n") {
		for _, m := range inline.FindAllStringSubmatchIndex(paragraph, -1) {
			text := strings.Join(strings.Fields(paragraph[m[2]:m[3]]), " ")
			c := Command{Doc: doc, Line: line + strings.Count(paragraph[:m[0]], "\n"), Text: text, Inline: true}
			if p := c.Program(); (p == "flaked" || p == "make" || strings.HasPrefix(c.Text, "scripts/") ||
				strings.HasPrefix(c.Text, "examples/")) && strings.Contains(c.Text, " ") {
				out = append(out, c)
			}
		}
		line += strings.Count(paragraph, "\n") + 2
	}
	return out
}
