package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// settings are the values of the flags that parse defines, one of each type.
type settings struct {
	Text   string
	Yes    bool
	Number int
	Time   time.Duration
	List   []string
}

func defaults() settings {
	return settings{Text: "default", Number: 1, Time: time.Second, List: []string{"default"}}
}

// parse runs a command with a flag of every type. It returns the values that the command sees,
// or the text of a usage error. Another command has flags of its own.
func parse(t *testing.T, args ...string) (got settings, failed string) {
	t.Helper()
	cmd := &cli.Command{
		Name: "try",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "text", Aliases: []string{"t"}, Value: "default"},
			&cli.BoolFlag{Name: "yes"},
			&cli.IntFlag{Name: "number", Value: 1},
			&cli.DurationFlag{Name: "time", Value: time.Second},
			&cli.StringSliceFlag{Name: "list", Value: cli.NewStringSlice("default")},
			&cli.StringFlag{Name: "token-file"},
		},
		Action: func(c *cli.Context) error {
			got = settings{c.String("text"), c.Bool("yes"), c.Int("number"), c.Duration("time"), c.StringSlice("list")}
			return nil
		},
	}
	other := &cli.Command{Name: "other", Subcommands: []*cli.Command{{
		Name: "sub", Flags: []cli.Flag{&cli.DurationFlag{Name: "elsewhere"}},
		Action: func(*cli.Context) error { return nil },
	}}}
	app := &cli.App{
		Name: "flaked", Commands: []*cli.Command{cmd, other},
		Writer: &bytes.Buffer{}, ErrWriter: &bytes.Buffer{}, ExitErrHandler: func(*cli.Context, error) {},
	}
	for _, c := range app.Commands {
		finish(c, "flaked")
	}
	err := app.RunContext(t.Context(), arrange(app.Commands, append([]string{"flaked", "try"}, args...)))
	if err != nil {
		code, text := explain(t.Context(), err)
		if code != exitUsage {
			t.Errorf("exit code %d, want %d", code, exitUsage)
		}
		return got, text
	}
	return got, ""
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "flaked.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Flags go before the environment, the environment before the file, and the file before
// defaults: for every type, in every combination.
func TestConfigPrecedence(t *testing.T) {
	sources := []struct {
		name string
		want settings
		args []string
		env  map[string]string
		file string
	}{
		{name: "default", want: defaults()},
		{name: "file", want: settings{"file", true, 2, 2 * time.Second, []string{"file", "file2"}},
			file: "text: file\nyes: true\nnumber: 2\ntime: 2s\nlist: [file, file2]\nelsewhere: 1h\n"},
		{name: "environment", want: settings{"env", false, 3, 3 * time.Second, []string{"env", "env2"}},
			env: map[string]string{"TEXT": "env", "YES": "false", "NUMBER": "3", "TIME": "3s", "LIST": "env,env2"}},
		{name: "flags", want: settings{"flag", true, 4, 4 * time.Second, []string{"flag", "flag2"}},
			args: strings.Fields("--text flag --yes --number 4 --time 4s --list flag --list flag2")},
	}
	for mask := range 1 << (len(sources) - 1) {
		want, name, args := sources[0].want, "default", []string(nil)
		env := map[string]string{}
		for i, s := range sources[1:] {
			if mask&(1<<i) == 0 {
				continue
			}
			want, name = s.want, name+" "+s.name
			args = append(args, s.args...)
			for k, v := range s.env {
				env["FLAKED_"+k] = v
			}
			if s.file != "" {
				args = append(args, "--config", configFile(t, s.file))
			}
		}
		t.Run(name, func(t *testing.T) {
			for k, v := range env {
				t.Setenv(k, v)
			}
			got, failed := parse(t, args...)
			if failed != "" || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v %s, want %+v", got, failed, want)
			}
		})
	}
}

// Each setting is looked up by itself. A flag may have its short name.
func TestConfigMixed(t *testing.T) {
	t.Setenv("FLAKED_CONFIG", configFile(t, "# a comment\ntext: file\nnumber: 2\ntime: \"2s\"\nlist: one\n"))
	t.Setenv("FLAKED_NUMBER", "3")
	t.Setenv("FLAKED_TIME", "") // not set
	got, failed := parse(t, "-t", "flag")
	want := settings{"flag", false, 3, 2 * time.Second, []string{"one"}}
	if failed != "" || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %s, want %+v", got, failed, want)
	}
}

func TestConfigFile(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"of another command", "elsewhere: 1h\n", ""},
		{"unknown", "text: x\nnope: 1\n", `line 2: nope: no such setting. Use the name of a flag`},
		{"with dashes", "--text: x\n", "line 1: --text: no such setting. Use the name of a flag"},
		{"another file", "config: x.yaml\n", "line 1: config: no such setting"},
		{"a secret", "token: abc\n", "line 1: token: secrets are not allowed here. Put the secret into its own file,"},
		{"twice", "text: a\ntext: b\n", `mapping key "text" already defined at line 1`},
		{"text for bool", "yes: maybe\n", `line 1: yes: "maybe" is not true or false`},
		{"text for number", "number: many\n", `line 1: number: "many" is not a whole number`},
		{"too large", "number: 99999999999999999999\n", `is not a whole number`},
		{"list for text", "text: [a]\n", "line 1: text: expected one value, not a list"},
		{"a list", "- text\n", "expected lines such as `zk: host:2181`"},
		{"two documents", "text: a\n---\ntext: b\n", "more than one YAML document. Keep one"},
	} {
		t.Run(row.name, func(t *testing.T) {
			file := configFile(t, row.text)
			_, failed := parse(t, "--config", file)
			if row.want == "" && failed != "" || !strings.Contains(failed, row.want) {
				t.Fatalf("%q, want %q", failed, row.want)
			}
			if row.want != "" && (!strings.Contains(failed, file+": ") || !strings.HasSuffix(failed, " See `flaked "+
				"try --help`.")) {
				t.Errorf("%q names no file, or no help", failed)
			}
		})
	}
	_, failed := parse(t, "--config", "/nonexistent/flaked.yaml")
	if want := "--config: file /nonexistent/flaked.yaml not found. Create it or correct the " +
		"path"; !strings.Contains(failed, want) {
		t.Errorf("%q, want %q", failed, want)
	}
}

// A settings file for `serve` serves the other commands as well.
func TestOneFileForAllCommands(t *testing.T) {
	file := configFile(t, "zk: 127.0.0.1:1\ncluster: prod\nlisten: [127.0.0.1:7609]\nlayout: twitter\naddr: "+
		"127.0.0.1:1\n")
	call(t, "", "decode", "--config", file, "2123840256405929993").wants(t, exitOK, "layout twitter: ", "")
	call(t, "", "get", "--config", file).wants(t, exitUnreachable, "", "127.0.0.1:1")
	call(t, "", "status", "--config", file).wants(t, exitUnreachable, "", "ZooKeeper cannot be reached")
}
