package main

import (
	"testing"

	"github.com/urfave/cli/v2"
)

// The audit list has a command as somebody can type it again.
func TestCommandLine(t *testing.T) {
	var line string
	app := &cli.App{Name: "flaked", Commands: []*cli.Command{{
		Name: "do",
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "addr"}, &cli.StringFlag{Name: "note"}, &cli.DurationFlag{Name: "for"},
			&cli.Int64Flag{Name: "next"}, &cli.BoolFlag{Name: "wait"}, outputFlag(),
		}, zkFlags("")...),
		Action: func(c *cli.Context) error { line = commandLine(c); return nil },
	}}}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"do"}, "flaked do"},
		{[]string{"do", "--zk", "zk1", "-o", "json", "order"}, "flaked do order"},
		{[]string{"do", "--addr", "a:1", "--addr", "[::1]:2", "order"}, "flaked do --addr a:1 --addr '[::1]:2' order"},
		{[]string{"do", "--wait", "--for", "1m", "--next", "7", "--note", "it's Ada's", "order:*"}, `flaked do --note 'it'\''s Ada'\''s' --for 1m0s --next 7 --wait 'order:*'`},
	} {
		if err := app.Run(append([]string{"flaked"}, row.args...)); err != nil || line != row.want {
			t.Errorf("%q: %s, %v", row.args, line, err)
		}
	}
}
