package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
)

// serve reads the settings of `flaked cluster init` from a file or the environment that serves both commands.
// A node that left them out would create a cluster with datacenter 0, whose IDs another cluster makes too.
func TestServeReadsTheSettingsOfClusterInit(t *testing.T) {
	t.Setenv("FLAKED_DATACENTER", "2")
	t.Setenv("FLAKED_SEQUENCE_START", "zero")
	var got node.Settings
	instead(t, "serve", func(c *cli.Context) (err error) {
		got, err = readClusterSettings(c)
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

// The command line overrides the environment, which overrides the file: a pod that has FLAKED_LAYOUT can ask another
// cluster's node.
func TestAddrOnTheCommandLineOverridesALayout(t *testing.T) {
	file := "--config " + configFile(t, "addr: 127.0.0.1:1\n")
	t.Setenv("FLAKED_LAYOUT", "twitter")
	for args, from := range map[string]string{"": "--layout", "--layout leaf --addr 127.0.0.1:1": "--layout",
		"--addr 127.0.0.1:1": "", file: "--layout", file + " --addr 127.0.0.1:2": ""} {
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

// A flag of serve that the command leaves out of what it hands on is a flag that does nothing.
func TestEveryFlagOfServeChangesWhatServeHandsOn(t *testing.T) {
	type outcome struct {
		Options   options
		ZooKeeper store.ZKConfig
		Err       string
	}
	outcomeOf := func(args ...string) (got outcome) {
		instead(t, "serve", func(c *cli.Context) error {
			var err, zkErr error
			got.Options, err = readOptions(c)
			got.ZooKeeper, zkErr = readZK(c)
			got.Err = fmt.Sprint(err, zkErr)
			return nil
		}, args...)
		return got
	}
	pair := []string{"--tls-cert", "c", "--tls-key", "k"}
	with := map[string][]string{"tls-cert": pair, "tls-key": pair, "tls-client-ca": pair, "peer-ca": pair}
	values := map[string]string{
		"listen": "unix:/s", "admin": "off", "layout": "twitter", "datacenter": "5", "on-rollback": "refuse",
		"sequence-start": "zero", "segment-start": "random", "unix-mode": "0600", "unix-group": "0",
	}
	// serve reads these files at once, and here they are missing. --dev contradicts --zk.
	refused := []string{"zk-auth-file", "zk-tls-ca", "zk-tls-cert", "zk-tls-key", "dev"}
	elsewhere := []string{"help", "config", "log-level", "log-format"}
	for _, flag := range serveCommand().Flags {
		name := flag.Names()[0]
		if slices.Contains(elsewhere, name) {
			continue
		}
		arg := "--" + name
		switch flag.(type) {
		case *cli.BoolFlag:
		case *cli.DurationFlag:
			arg += "=1.5s"
		default:
			value, ok := values[name]
			if !ok {
				value = "other"
			}
			arg += "=" + value
		}
		base := append([]string{"--zk", "zk1", "--state-dir", t.TempDir()}, with[name]...)
		before, after := outcomeOf(base...), outcomeOf(append(slices.Clone(base), arg)...)
		switch {
		case after.Err != before.Err && !slices.Contains(refused, name):
			t.Errorf("%s: %s", arg, after.Err)
		case reflect.DeepEqual(before, after):
			t.Errorf("%s changes nothing", arg)
		}
	}
}
