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
	var s splitter
	for len(line) > 0 {
		line = line[s.step(line):]
	}
	s.endCommand()
	return s.out
}

type splitter struct {
	out   [][]string
	words []string
	word  strings.Builder
	open  bool // a word has begun
	skip  bool // next word: a redirection target
}

// step reads the beginning of a line, and returns its length.
func (s *splitter) step(line string) int {
	switch c := line[0]; {
	case c == '\'' || c == '"':
		text, _, _ := strings.Cut(line[1:], string(c))
		s.add(text)
		return min(len(text)+2, len(line))
	case strings.HasPrefix(line, "$("):
		n := max(strings.IndexByte(line, ')'), 0) + 1
		s.add(line[:n])
		return n
	case strings.HasPrefix(line, "\\\n"):
		return 2
	case c == '\\' && len(line) > 1:
		s.add(line[1:2])
		return 2
	case c == ' ' || c == '\t':
		s.end()
	case c == '>' || c == '<':
		if strings.Trim(s.word.String(), "0123456789") == "" { // a descriptor's number
			s.word.Reset()
			s.open = false
		}
		s.end()
		s.skip = true
		if strings.HasPrefix(line[1:], "&") {
			return 2
		}
	case strings.ContainsRune("|&;\n", rune(c)):
		s.endCommand()
	default:
		s.add(line[:1])
	}
	return 1
}

func (s *splitter) add(text string) {
	s.open = true
	s.word.WriteString(text)
}

// end ends a word.
func (s *splitter) end() {
	if s.open && !s.skip && !(len(s.words) == 0 && strings.Contains(s.word.String(), "=")) {
		s.words = append(s.words, s.word.String())
	}
	s.skip = s.skip && !s.open
	s.word.Reset()
	s.open = false
}

func (s *splitter) endCommand() {
	s.end()
	for len(s.words) > 0 && slices.Contains(keywords, s.words[0]) {
		s.words = s.words[1:]
	}
	if len(s.words) > 0 {
		s.out, s.words = append(s.out, s.words), nil
	}
}
