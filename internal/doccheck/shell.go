package doccheck

import (
	"path/filepath"
	"slices"
	"strings"
)

// keywords stand before a command in a loop.
var keywords = []string{"do", "until", "while", "if", "then", "!"}

// wrappers run the command that their arguments end with.
var wrappers = []string{"nohup", "runuser", "sudo", "taskset", "time", "timeout"}

// Calls are the arguments, without the program's name, of every call of a
// program in a command line: pipes, lists and wrappers are looked into.
func (c Command) Calls(program string) [][]string {
	var out [][]string
	for _, words := range simple(c.Text) {
		for i, word := range words {
			if filepath.Base(word) != program {
				continue
			}
			if i == 0 || slices.Contains(wrappers, words[0]) && (i+1 < len(words) && words[i+1] != "--") {
				out = append(out, words[i+1:])
				break
			}
		}
	}
	return out
}

// simple splits a command line into simple commands, and those into words:
// enough of a shell for documents. What is substituted stays one word as it is
// written; redirections and assignments are left out.
func simple(line string) [][]string {
	var (
		out   [][]string
		words []string
		word  strings.Builder
		open  bool // a word has begun
		skip  bool // the next word is where output goes
	)
	end := func() {
		if open && !skip && !(len(words) == 0 && strings.Contains(word.String(), "=")) {
			words = append(words, word.String())
		}
		skip = skip && !open
		word.Reset()
		open = false
	}
	endCommand := func() {
		end()
		for len(words) > 0 && slices.Contains(keywords, words[0]) {
			words = words[1:]
		}
		if len(words) > 0 {
			out, words = append(out, words), nil
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'' || c == '"':
			open = true
			n := strings.IndexByte(line[i+1:], c)
			if n < 0 {
				n = len(line) - i - 1
			}
			word.WriteString(line[i+1 : i+1+n])
			i += n + 1
		case strings.HasPrefix(line[i:], "$("):
			open = true
			n := max(strings.IndexByte(line[i:], ')'), 0)
			word.WriteString(line[i : i+n+1])
			i += n
		case c == '\\' && i+1 < len(line):
			if i++; line[i] != '\n' {
				open = true
				word.WriteByte(line[i])
			}
		case c == ' ' || c == '\t':
			end()
		case c == '>' || c == '<':
			if strings.Trim(word.String(), "0123456789") == "" { // the number of a descriptor
				word.Reset()
				open = false
			}
			end()
			skip = true
			if i+1 < len(line) && line[i+1] == '&' {
				i++
			}
		case c == '|' || c == '&' || c == ';' || c == '\n':
			endCommand()
		default:
			open = true
			word.WriteByte(c)
		}
	}
	endCommand()
	return out
}
