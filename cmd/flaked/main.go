// Command flaked runs a node that issues snowflake IDs, and administers a cluster of nodes.
// This package is the command line: flags, tables, exit codes, and the ports of a node.
//
// newApp lists the commands. Each has a file of its own. Beside them:
//
//   - flags.go has the flags of several commands, flags_read.go and access.go read them. cluster_flags.go and
//     seq_flags.go do so for the settings of a cluster and of a sequence.
//   - args.go, config.go, environment.go and usage.go stand between the command line and the library that parses it.
//   - exit.go makes the exit code of an error, and advice.go says what to do about it.
//   - serve.go runs a node. serve_*.go, listen*.go and log*.go belong to it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// version is stamped by the build: -ldflags '-X main.version=1.2.3'.
var version = "dev"

func main() {
	// By default Go ends with exit code 2 after a panic or SIGABRT, which is the code of a wrong
	// command line: systemd's unit would not restart the node. With this it ends by SIGABRT.
	debug.SetTraceback("crash")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a clean end. A second later stop restores the default, so that
	// another signal ends the process at once. The delay ignores a signal sent twice:
	// timeout(1) signals the process and then its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run does the work of main and returns the exit code. args begin with the program's name.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := newApp(stdin, stdout, stderr)
	if len(args) == 0 || args[len(args)-1] != "--generate-bash-completion" {
		args = reorderArgs(app.Commands, args)
	}
	err := app.RunContext(ctx, args)
	code, text := exitCodeAndText(ctx, err)
	if text != "" {
		line := "flaked: " + text
		if toJournal(stderr) {
			line = withPriority(journalError, line)
		}
		fmt.Fprintln(stderr, line)
	}
	return code
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:                  "flaked",
		Usage:                 "unique 64-bit IDs over TCP, from nodes that ZooKeeper coordinates",
		CustomAppHelpTemplate: appHelp,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "version", DisableDefaultText: true,
			Usage: "print the version, and the Go version and platform of its build"}},
		Commands: []*cli.Command{
			serveCommand(), drainCommand(), doctorCommand(), healthcheckCommand(), // run a node
			getCommand(), decodeCommand(), layoutCommand(), benchCommand(), // use it
			statusCommand(), completionCommand(),
			clusterCommand(), workersCommand(), seqCommand(), // change the cluster: last, as the help does not align them
		},
		Reader:    stdin,
		Writer:    stdout,
		ErrWriter: stderr,
		// The library would exit at an error. run prints errors and returns their codes.
		ExitErrHandler:       func(*cli.Context, error) {},
		OnUsageError:         onUsageError,
		HideVersion:          true,
		EnableBashCompletion: true,
		HideHelpCommand:      true, // arrange does it
		Action:               rootAction,
	}
	for _, cmd := range app.Commands {
		finishCommand(cmd, app.Name)
	}
	return app
}

// finishCommand sets what all commands have in common, for cmd and the commands below it.
func finishCommand(cmd *cli.Command, parent string) {
	path := parent + " " + cmd.Name
	cmd.OnUsageError = onUsageError
	cmd.HideHelpCommand = true
	if len(cmd.Subcommands) > 0 {
		cmd.Action = groupAction
		for _, sub := range cmd.Subcommands {
			finishCommand(sub, path)
		}
	} else {
		finishLeaf(cmd)
	}
	// The library takes this text for a template, so anything that looks like one is escaped.
	cmd.CustomHelpTemplate = strings.ReplaceAll(commandHelp(path, cmd), "{{", `{{"{{"}}`)
}

// finishLeaf is finishCommand for a command without commands below it: it adds --config, the environment and the checks
// before the action.
func finishLeaf(cmd *cli.Command) {
	if len(cmd.Flags) > 0 {
		cmd.Flags = append(cmd.Flags, &cli.StringFlag{Name: "config", Usage: "YAML `FILE` with flags that are not " +
			"given otherwise"})
	}
	for _, f := range cmd.Flags {
		if !commandLineOnly(f) {
			setField([]cli.Flag{f}, "EnvVars", []string{variableToRead(f.Names()[0])})
		}
	}
	before, action := cmd.Before, cmd.Action
	cmd.Before = func(c *cli.Context) error {
		if c.NArg() > 0 && strings.TrimSpace(cmd.ArgsUsage) == "" {
			return withHelp(c, usageError("unexpected argument %q", c.Args().First()))
		}
		if len(cmd.Flags) > 0 && cmd.Name != serveName { // serve has a log for it
			warnOfVariables(c)
		}
		// The path of --config must be checked before the file is read, and the paths in the file after that.
		for _, step := range []func(*cli.Context) error{checkPaths, loadConfig, checkPaths, askOwnNode} {
			if err := step(c); err != nil {
				return withHelp(c, err)
			}
		}
		if before != nil {
			return withHelp(c, before(c))
		}
		return nil
	}
	cmd.Action = func(c *cli.Context) error { return withHelp(c, action(c)) }
}

func rootAction(c *cli.Context) error {
	switch {
	case c.Bool("version"), c.Args().First() == "version":
		return printText(c, "flaked %s\n%s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	case c.Args().Present():
		return groupAction(c)
	}
	return cli.ShowAppHelp(c)
}

// groupAction is the action of a command that has commands below it.
func groupAction(c *cli.Context) error {
	if c.Args().Present() {
		name := c.Args().First()
		return withHelp(c, usageError("there is no command %q%s", name, suggestCommand(c.Command.Subcommands, name)))
	}
	return cli.ShowSubcommandHelp(c)
}
