package main

import (
	"fmt"
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
		kind := typeOf(f)
		if isList(f) {
			kind = "list"
		}
		names = append(names, fmt.Sprintf("%s %s %s", name, variableToRead(name), kind))
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

// A configuration of the release gives a node the same settings. So do the defaults.
func TestFrozenConfiguration(t *testing.T) {
	upgrade.Names(t, "configuration", settingsOfServe(t, "--config", upgrade.Path(t, "0.1.0/flaked.yaml")))
	upgrade.Names(t, "defaults", settingsOfServe(t, "--zk", "zk1:2181", "--state-dir", "/var/lib/flaked"))
}

func settingsOfServe(t *testing.T, args ...string) (settings []string) {
	t.Helper()
	instead(t, serveName, func(c *cli.Context) error {
		for _, f := range c.Command.Flags {
			name := f.Names()[0]
			switch {
			case name == "config" || commandLineOnly(f):
			case isList(f):
				settings = append(settings, name+"="+strings.Join(c.StringSlice(name), ","))
			default:
				settings = append(settings, fmt.Sprintf("%s=%v", name, c.Value(name)))
			}
		}
		_, err := readOptions(c)
		return err // docs/operate.md says what may be refused
	}, args...)
	return settings
}
