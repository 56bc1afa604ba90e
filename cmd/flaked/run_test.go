package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
	"go.uber.org/goleak"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// TestMain removes the environment variables that set flags, and shortens a time.
func TestMain(m *testing.M) {
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "FLAKED_TEST_ZK", "FLAKED_ZK_CLASSPATH", "FLAKED_ZK_JAVA": // zktest's
		default:
			if strings.HasPrefix(name, "FLAKED_") {
				os.Unsetenv(name)
			}
		}
	}
	sessionTimeout = 3 * time.Second // of commands that wait for a server
	zktest.Main(m)
}

type result struct {
	code           int
	stdout, stderr string
}

// call runs a command line to its end. args do not include the program's name.
func call(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return callCtx(t, t.Context(), stdin, args...)
}

func callCtx(t *testing.T, ctx context.Context, stdin string, args ...string) result {
	t.Helper()
	if len(args) > 0 && args[0] == "serve" && !slices.Contains(args, "--log-format") {
		args = append([]string{"serve", "--log-format", "text"}, args[1:]...) // so that the error is one of text
	}
	before := goleak.IgnoreCurrent()
	var stdout, stderr bytes.Buffer
	code := run(ctx, append([]string{"flaked"}, args...), strings.NewReader(stdin), &stdout, &stderr)
	if err := goleak.Find(before); err != nil {
		t.Errorf("flaked %s left goroutines: %v", strings.Join(args, " "), err)
	}
	return result{code, stdout.String(), stderr.String()}
}

// instead runs a command of flaked with another action.
func instead(t *testing.T, command string, action cli.ActionFunc, args ...string) {
	t.Helper()
	app := newApp(nil, t.Output(), t.Output())
	app.Command(command).Action = action
	if err := app.RunContext(t.Context(), append([]string{"flaked", command}, args...)); err != nil {
		t.Fatalf("%s %q: %v", command, args, err)
	}
}

// wants checks the exit code and the texts that the outputs must contain. "" means that the
// output must be empty.
func (r result) wants(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, o := range []struct{ name, got, want string }{{"stdout", r.stdout, stdout}, {"stderr", r.stderr, stderr}} {
		if o.want == "" && o.got != "" || !strings.Contains(o.got, o.want) {
			t.Errorf("%s:\n%s\nwant: %q", o.name, o.got, o.want)
		}
	}
	if r.stderr != "" && !strings.HasPrefix(r.stderr, "flaked: ") {
		t.Errorf("stderr does not begin with flaked: %q", r.stderr)
	}
	if t.Failed() {
		t.Logf("%+v", r)
	}
}

func walk(commands []*cli.Command, path string, f func(path string, c *cli.Command)) {
	for _, c := range commands {
		f(path+" "+c.Name, c)
		walk(c.Subcommands, path+" "+c.Name, f)
	}
}

// Every command has a description and an example. Every flag has a description and an
// environment variable.
func TestEveryCommand(t *testing.T) {
	app := newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	walk(app.Commands, "flaked", func(path string, c *cli.Command) {
		help := c.CustomHelpTemplate
		if c.Usage == "" || len(c.Subcommands) == 0 && c.Description == "" {
			t.Errorf("%s: not described", path)
		}
		if len(c.Flags) > 0 && !strings.Contains(help, "\n  "+path+" ") {
			t.Errorf("%s: no example", path)
		}
		for line := range strings.Lines(help) {
			if n := len(strings.TrimRight(line, "\n")); n > 100 {
				t.Errorf("%s: a line of %d columns in the help: %s", path, n, line)
			}
		}
		for _, f := range c.Flags {
			name := f.Names()[0]
			if name == "help" {
				continue
			}
			doc := f.(cli.DocGenerationFlag)
			if doc.GetUsage() == "" {
				t.Errorf("%s --%s: not described", path, name)
			}
			want := []string{variableToRead(name)}
			if commandLineOnly(f) { // as --confirm, which must not confirm all calls
				want = nil
			}
			if got := doc.GetEnvVars(); !slices.Equal(got, want) {
				t.Errorf("%s --%s: environment %q, want %q", path, name, got, want)
			}
			switch name {
			case "port", "service-host", "service-port":
				t.Errorf("%s --%s: Kubernetes sets %s", path, name, variableToRead(name))
			}
		}
	})
}

func TestArrange(t *testing.T) {
	commands := newApp(nil, nil, nil).Commands
	for _, row := range []struct{ in, want string }{
		{"", ""},
		{"decode 1 -o json 2", "decode -o json -- 1 2"},
		{"decode -o json -- -1", "decode -o json -- -1"},
		{"decode -1", "decode -- -1"},
		{"get 5 --addr x", "get --addr x -- 5"},
		{"get 5 --addr", "get --addr"},
		{"status --zk-tls extra", "status --zk-tls -- extra"},
		{"cluster init --zk h x", "cluster init --zk h -- x"},
		{"help", "--help"},
		{"help cluster init", "cluster init --help"},
		{"cluster help init", "cluster init --help"},
		{"decode help", "decode -- help"},
		{"get 5 --help", "get --help"},
	} {
		got := reorderArgs(commands, append([]string{"flaked"}, strings.Fields(row.in)...))
		if s := strings.Join(got[1:], " "); s != row.want {
			t.Errorf("%q: %q, want %q", row.in, s, row.want)
		}
	}
}

func TestVersion(t *testing.T) {
	call(t, "", "--version").wants(t, exitOK, "flaked dev\ngo1", "")
}

func TestHelp(t *testing.T) {
	for args, want := range map[string]string{"-h": "\n   flaked serve --dev", "help": "\n   flaked serve --dev",
		"cluster": "flaked cluster - create and show a cluster", "help cluster init": "flaked cluster init - ",
		"get --addr x --help": "flaked get - print new IDs"} {
		call(t, "", strings.Fields(args)...).wants(t, exitOK, want, "")
	}
	help := call(t, "").stdout
	if !strings.Contains(help, "\n   get          print") || !strings.Contains(help, "\n   completion   print") {
		t.Errorf("the texts are not aligned:\n%s", help)
	}
	if n := strings.Count(help, "\n"); n > 40 {
		t.Errorf("%d lines do not fit on a screen", n)
	}
	for line := range strings.Lines(help) {
		if len(line) > 101 {
			t.Errorf("a long line: %s", line)
		}
	}
}
