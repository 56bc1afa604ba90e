package clidoc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// prog has one of each thing that a shell can be told of.
func prog() Command {
	return Command{
		Name: "prog", Summary: "does things", Synopsis: "prog COMMAND",
		Flags: []Flag{{Names: []string{"version"}, Text: "which"}},
		Commands: []Command{
			{
				Name: "serve", Summary: "run it: for good", Synopsis: "prog serve [flags]",
				Text: "Runs.\n\nExamples:\n  prog serve --dev\n  prog serve --output json\n\nThat's all.",
				Flags: []Flag{
					{Names: []string{"output", "o"}, Value: "FORMAT", Text: "it's [table] or json", Default: "table", Choices: []string{"table", "json"}},
					{Names: []string{"key"}, Value: "FILE", Kind: File, Text: "a key", Category: "security"},
					{Names: []string{"dir"}, Value: "DIRECTORY", Kind: Directory, Text: "a place"},
					{Names: []string{"dev"}, Text: "try it"},
					{Names: []string{"listen"}, Value: "HOST:PORT", Text: "where", Repeatable: true},
				},
			},
			{
				Name: "cluster", Summary: "look after it", Synopsis: "prog cluster COMMAND",
				Commands: []Command{
					{Name: "init", Summary: "make it", Synopsis: "prog cluster init", Flags: []Flag{{Names: []string{"lease"}, Value: "TIME", Text: "how long"}}},
					{Name: "show", Summary: "print it", Synopsis: "prog cluster show"},
				},
			},
			{Name: "completion", Summary: "for shells", Synopsis: "prog completion SHELL", Words: []string{"bash", "zsh"}},
		},
	}
}

// completions are lines as they are typed, up to the tab, and what a shell
// offers then.
var completions = []struct {
	name, line string
	want       []string
}{
	{"a command", "prog ser", []string{"serve"}},
	{"one of several", "prog c", []string{"cluster", "completion"}},
	{"a command below another", "prog cluster s", []string{"show"}},
	{"both below another", "prog cluster ", []string{"init", "show"}},
	{"a flag", "prog serve --o", []string{"--output"}},
	{"a flag behind a value", "prog serve --output json --de", []string{"--dev"}},
	{"a flag of a command below", "prog cluster init --l", []string{"--lease"}},
	{"a word that a flag takes", "prog serve --output j", []string{"json"}},
	{"by its short name", "prog serve -o t", []string{"table"}},
	{"behind an equals sign", "prog serve --output=j", []string{"json"}},
	{"a file", "prog serve --key key", []string{"key.pem"}},
	{"a directory", "prog serve --dir s", []string{"sub"}},
	{"an argument", "prog completion b", []string{"bash"}},
	{"a value that cannot be guessed", "prog cluster init --lease ", nil},
	{"nothing", "prog wrong", nil},
}

// place is a directory with the script in it and files to complete.
func place(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{name: script, "key.pem": ""} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBash(t *testing.T) {
	t.Parallel()
	dir := place(t, "script", Bash(prog()))
	// As readline does it: words are broken at = too.
	const typed = `
source ./script
complete -p prog >/dev/null || exit 9
compopt() { :; } # is for readline alone
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"${line//=/ = }"
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _prog
  echo "${COMPREPLY[*]}"
done`
	var lines strings.Builder
	for _, c := range completions {
		fmt.Fprintln(&lines, c.line)
	}
	cmd := exec.Command("bash", "--norc", "-c", typed)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(lines.String()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(got) != len(completions) {
		t.Fatalf("%d answers for %d lines: %q", len(got), len(completions), out)
	}
	for i, c := range completions {
		words := strings.Fields(got[i])
		slices.Sort(words)
		if !slices.Equal(words, c.want) {
			t.Errorf("%s: %q offers %q, want %q", c.name, c.line, words, c.want)
		}
	}
}
