package docs

import (
	"path/filepath"
	"slices"
	"strings"
)

// keywords may precede a command in a loop or condition.
var keywords = []string{"do", "until", "while", "if", "then", "!"}

// wrappers run the command that ends their arguments.
var wrappers = []string{"nohup", "runuser", "sudo", "taskset", "time", "timeout"}

// Calls returns the arguments of each call of program in the command line, without the
// program's name. It finds calls in pipes, in lists and after wrappers.
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

// simple splits a command line into simple commands, and each of these into words. It knows as
// much of a shell as the documents use. A substitution stays one word, as written. Redirections
// and assignments before a command are dropped.
func simple(line string) [][]string {
	var (
		out   [][]string
		words []string
		word  strings.Builder
		open  bool // a word has begun
		skip  bool // next word: a redirection target
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
			if strings.Trim(word.String(), "0123456789") == "" { // a descriptor's number
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
