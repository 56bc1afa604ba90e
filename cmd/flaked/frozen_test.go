package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/check/upgrade"
)

func TestFrozenExitCodes(t *testing.T) {
	upgrade.Names(t, "exit-codes", []string{
		fmt.Sprintf("%d done", exitOK), fmt.Sprintf("%d failed", exitFailure), fmt.Sprintf("%d usage", exitUsage),
		fmt.Sprintf("%d unreachable", exitUnreachable), fmt.Sprintf("%d degraded", exitDegraded),
	})
}

func TestFrozenCommands(t *testing.T) {
	var paths []string
	walk(newApp(nil, nil, nil).Commands, "flaked", func(path string, _ *cli.Command) { paths = append(paths, path) })
	upgrade.Names(t, "commands", paths)
}

// Settings are the keys of a configuration file, the environment variables, and the flags that a file may set.
func TestFrozenSettings(t *testing.T) {
	var names []string
	for name, f := range allFlags(newApp(nil, nil, nil).Commands) {
		kind := kindOf(f)
		if isList(f) {
			kind = "list"
		}
		names = append(names, fmt.Sprintf("%s %s %s", name, envName(name), kind))
	}
	for _, special := range []string{"FLAKED_CONFIG", tokenEnv, "FLAKED_ZK_AUTH"} {
		names = append(names, "- "+special+" string")
	}
	upgrade.Names(t, "settings", names)
}

func isList(f cli.Flag) bool {
	slice, ok := f.(cli.DocGenerationSliceFlag)
	return ok && slice.IsSliceFlag()
}

// A configuration of the release gives a node the same settings, also those that it leaves out.
func TestFrozenConfiguration(t *testing.T) {
	settings := map[string]string{}
	app := newApp(nil, t.Output(), t.Output())
	serve := app.Command(serveName)
	serve.Action = func(c *cli.Context) error {
		for _, f := range serve.Flags {
			if name := f.Names()[0]; name != "config" && !commandLineOnly(f) {
				settings[name] = fmt.Sprint(c.Value(name))
				if isList(f) {
					settings[name] = strings.Join(c.StringSlice(name), ",")
				}
			}
		}
		_, err := serveOptions(c)
		return err
	}
	if err := app.RunContext(context.Background(),
		[]string{"flaked", "serve", "--config", upgrade.Path(t, "0.1.0/flaked.yaml")}); err != nil {
		t.Fatalf("a configuration of 0.1.0 is refused: %v. docs/upgrading.md says what may change", err)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		lines = append(lines, name+"="+settings[name])
	}
	upgrade.Names(t, "configuration", lines)
}
