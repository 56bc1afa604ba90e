package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/node"
)

// serve reads the settings of `flaked cluster init` from a file or the environment that serves both commands.
// A node that left them out would create a cluster with datacenter 0, whose IDs another cluster makes too.
func TestServeReadsTheSettingsOfClusterInit(t *testing.T) {
	t.Setenv("FLAKED_DATACENTER", "2")
	t.Setenv("FLAKED_SEQUENCE_START", "zero")
	var got node.Settings
	instead(t, "serve", func(c *cli.Context) (err error) {
		got, err = clusterSettings(c)
		return err
	}, "--zk", "zk1", "--layout", "twitter", "--bootstrap")
	cl, err := got.Record("u", 0)
	if err != nil || cl.Datacenter != 2 || cl.SequenceStart != "zero" {
		t.Errorf("%+v, %v", cl, err)
	}
	for _, f := range serveCommand().VisibleFlags() {
		if slices.Contains([]string{"datacenter", "on-rollback", "borrow", "sequence-start", "segment-start"},
			f.Names()[0]) {
			t.Errorf("serve --help lists --%s", f.Names()[0])
		}
	}
}

// The command line overrides the environment: a pod that has FLAKED_LAYOUT can ask another cluster's node.
func TestAddrOverridesALayoutOfTheEnvironment(t *testing.T) {
	t.Setenv("FLAKED_LAYOUT", "twitter")
	for args, from := range map[string]string{"": "--layout", "--layout leaf --addr 127.0.0.1:1": "--layout",
		"--addr 127.0.0.1:1": ""} {
		var found foundLayout
		var err error
		instead(t, "decode", func(c *cli.Context) error {
			found, err = findLayout(c)
			return nil
		}, strings.Fields(args)...)
		if (err == nil) != (from != "") || found.from != from {
			t.Errorf("%q: %q, %v", args, found.from, err)
		}
	}
}
