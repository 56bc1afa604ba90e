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
		finishCommand(c, "flaked")
	}
	err := app.RunContext(t.Context(), reorderArgs(app.Commands, append([]string{"flaked", "try"}, args...)))
	if err != nil {
		code, text := exitCodeAndText(t.Context(), err)
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
