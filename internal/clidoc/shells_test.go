package clidoc

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// prog returns a program with one of each thing that a completion script can offer.
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

// completions are lines typed up to the tab key, with the words that a shell must then offer.
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
	{"a file", "prog serve --key ke", []string{"key.pem"}},
	{"a directory", "prog serve --dir s", []string{"sub"}},
	{"an argument", "prog completion b", []string{"bash"}},
	{"a value that cannot be guessed", "prog cluster init --lease ", nil},
	{"nothing", "prog wrong", nil},
}

// place returns a new directory with the script and with files to complete.
func place(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"script": script, "key.pem": "", "asking": askingZsh} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The scripts read lines that end where tab is pressed. For each line they print one line with
// the words that the shell offers.
const (
	// Splits words at = too, as readline does.
	typedInBash = `
source ./script
compopt() { :; } # is for readline alone
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"${line//=/ = }"
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  "_${COMP_WORDS[0]}"
  echo "${COMPREPLY[*]}"
done`

	// Only the line editor may call completion functions, and it needs a terminal.
	// zle-line-init runs before the editor reads its first line. The offered words go into the
	// file answers.
	typedInZsh = `
cat >lines
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source ./asking"
zpty -r shell >screen # to its end
cat answers`

	askingZsh = `
setopt no_auto_menu no_auto_list no_beep
autoload -Uz compinit
compinit -D -u
source ./script
compadd() {
  local -a hits
  if [[ " $* " != *' -'[OAD]' '* ]]; then
    builtin compadd -A hits "$@"
    offered+=($hits)
  fi
  builtin compadd "$@"
}
zle-line-init() {
  while IFS= read -r line; do
    offered=() BUFFER=$line CURSOR=$#line
    zle complete-word
    print -r -- $offered >>answers
  done <lines
  exit
}
zle -N zle-line-init
`

	typedInFish = `
source ./script
while read --line line
  set -l offered (complete --do-complete $line | string split --fields 1 \t | string replace --regex '^--[a-z]+=' '' | string trim --right --chars /)
  echo "$offered"
end`
)

var shells = []struct {
	name, typed string
	args        []string
	script      func(Command) string
	shipped     string
}{
	{"bash", typedInBash, []string{"--norc", "-c"}, Bash, "flaked.bash"},
	{"zsh", typedInZsh, []string{"-f", "-c"}, Zsh, "_flaked"},
	{"fish", typedInFish, []string{"--no-config", "-c"}, Fish, "flaked.fish"},
}

func TestShells(t *testing.T) {
	t.Parallel()
	for _, sh := range shells {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			for _, c := range completions {
				lines = append(lines, c.line)
			}
			for i, got := range offered(t, sh.name, sh.typed, sh.args, sh.script(prog()), lines) {
				if c := completions[i]; !slices.Equal(got, c.want) {
					t.Errorf("%s: %q offers %q, want %q", c.name, c.line, got, c.want)
				}
			}
		})
	}
}

// Each help text is quoted somewhere in the shipped scripts. A shell that reads a script
// without complaint proves that the quoting is right.
func TestShippedScripts(t *testing.T) {
	t.Parallel()
	reference, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range regexp.MustCompile(`(?m)^## (flaked .*)$`).FindAllStringSubmatch(string(reference), -1) {
		lines = append(lines, m[1]+" --h")
	}
	for _, sh := range shells {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(filepath.Join("../../deploy/completions", sh.shipped))
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range offered(t, sh.name, sh.typed, sh.args, string(script), lines) {
				if !slices.Contains(got, "--help") {
					t.Errorf("%q offers %q and not --help", lines[i], got)
				}
			}
		})
	}
}

// offered returns the words that a shell offers for each line, sorted. Tab is pressed at the
// end of each line.
func offered(t *testing.T, shell, typed string, args []string, script string, lines []string) [][]string {
	t.Helper()
	path, err := exec.LookPath(shell)
	require(t, shell, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, typed)...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stderr = place(t, script), strings.NewReader(strings.Join(lines, "\n")+"\n"), &said
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "TERM=dumb")
	out, err := cmd.Output()
	if err != nil || said.Len() > 0 {
		t.Fatalf("%s: %v: %s", shell, err, said.String())
	}
	answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(answers) != len(lines) {
		t.Fatalf("%d answers for %d lines: %q", len(answers), len(lines), out)
	}
	var all [][]string
	for _, a := range answers {
		words := strings.Fields(strings.ReplaceAll(a, "/", ""))
		slices.Sort(words)
		all = append(all, slices.Compact(words))
	}
	return all
}

// require skips the test if err says that a program is missing. With FLAKED_TEST_TOOLS=require
// it fails the test instead.
func require(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("FLAKED_TEST_TOOLS") == "require" {
		t.Fatalf("FLAKED_TEST_TOOLS=require, but no %s: %v; scripts/get-tools.sh gets it", name, err)
	}
	t.Skipf("no %s: %v; scripts/get-tools.sh gets it", name, err)
}
