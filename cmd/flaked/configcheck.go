package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/node"
)

func configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "check the settings of a node",
		Subcommands: []*cli.Command{{
			Name:  "check",
			Usage: "print the settings that flaked serve would use, and what it would refuse",
			Description: `Reads the flags, the environment and the file of --config as flaked serve does, and the
files that they name: tokens, certificates and passwords. It prints each setting with
its value and where the value comes from. It opens no port, asks no ZooKeeper and writes
nothing, so it may run beside the node. flaked doctor checks what a node needs from the
machine and from ZooKeeper.

Exits with 0 if serve would accept all settings. Exits with 2 after printing everything
that serve would refuse, one a line.

Examples:
  flaked config check --config /etc/flaked.yaml
  flaked config check --config /etc/flaked.yaml -o json | jq -r '.errors[]'`,
			Flags:  append([]cli.Flag{outputFlag()}, serveFlags()...),
			Action: configCheck,
		}},
	}
}

// configReport is the JSON of `flaked config check`.
type configReport struct {
	OK       bool          `json:"ok"`
	Errors   []string      `json:"errors"` // what serve would refuse
	Settings []givenOption `json:"settings"`
}

// givenOption is a setting: the name of its flag, its value, and where the value comes from.
type givenOption struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"` // default, command line, environment or file
}

func configCheck(c *cli.Context) error {
	r := configReport{Errors: []string{}, Settings: settingsOf(c)}
	for _, err := range refusals(c) {
		_, text := explain(c.Context, err)
		r.Errors = append(r.Errors, clusterview.Clean(text))
	}
	r.OK = len(r.Errors) == 0
	err := show(c, r, func(w io.Writer) error { return printSettings(w, r.Settings) })
	if err != nil || r.OK {
		return err
	}
	return &codedError{exitUsage, &settingsError{r.Errors}}
}

// settingsError has everything that serve would refuse.
type settingsError struct{ errors []string }

func (e *settingsError) Error() string {
	count := "1 error"
	if n := len(e.errors); n > 1 {
		count = fmt.Sprintf("%d errors", n)
	}
	return "flaked serve would refuse these settings: " + count + "\n" + strings.Join(e.errors, "\n")
}

// refusals returns what serve would refuse, without opening a port or a state directory.
func refusals(c *cli.Context) (wrong []error) {
	check := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	_, err := logOptions(c, io.Discard)
	check(err)
	o, refused := serveOptions(c)
	wrong = append(wrong, refused...)
	guard := o.checkCredentials(check)
	for i, given := range o.listenOn {
		check(o.checkListener(given, guard))
		if slices.Contains(o.listenOn[:i], given) {
			check(usageError("--listen %s is given twice", given))
		}
		if given == o.admin {
			check(usageError("--listen and --admin are both %s. Give them different ports", given))
		}
	}
	if o.admin != "" {
		if network, _, err := splitAddr(o.admin); err != nil || network != "tcp" {
			check(usageError("--admin: %q is not HOST:PORT or off", o.admin))
		}
	}
	if !o.dev && c.String("zk") != "" {
		_, err := zkConfig(c, nil)
		check(err)
	}
	check(node.Config{Heartbeat: o.node.Heartbeat, Reserve: o.node.Reserve}.CheckTimes())
	if o.node.Bootstrap || o.dev {
		_, err := o.node.Settings.Record("", o.node.Heartbeat)
		check(err)
	}
	return wrong
}

// checkCredentials reads the files with credentials. It calls check with an error of the
// certificate and with one of the tokens, and returns those that could be read.
func (o options) checkCredentials(check func(error)) *credentials.Server {
	good := credentials.Config{}
	tokens := credentials.Config{TokenFile: o.guard.TokenFile, Token: o.guard.Token}
	if _, err := credentials.Load(tokens); err != nil {
		check(credentialError(o.guard, err))
	} else {
		good = tokens
	}
	if o.guard.Cert != "" && o.guard.Key != "" {
		pair := credentials.Config{Cert: o.guard.Cert, Key: o.guard.Key, ClientCA: o.guard.ClientCA}
		if _, err := credentials.Load(pair); err != nil {
			check(credentialError(o.guard, err))
		} else {
			good.Cert, good.Key, good.ClientCA = pair.Cert, pair.Key, pair.ClientCA
		}
	}
	guard, err := credentials.Load(good)
	check(err)
	return guard
}

// settingsOf returns the flags of serve in effect. Secrets are left out.
func settingsOf(c *cli.Context) []givenOption {
	var all []givenOption
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if name == "output" || name == "config" || name == "help" {
			continue
		}
		o := givenOption{name, flagValue(c, f), "default"}
		switch {
		case setByFile(c, name):
			o.From = "file"
		case c.IsSet(name) && os.Getenv(envName(name)) == o.Value: // see originOf
			o.From = "environment"
		case c.IsSet(name):
			o.From = "command line"
		}
		all = append(all, o)
	}
	for _, secret := range []string{tokenEnv, "FLAKED_ZK_AUTH"} {
		if os.Getenv(secret) != "" {
			all = append(all, givenOption{secret, "(secret)", "environment"})
		}
	}
	return all
}

// flagValue returns the value of a flag in words.
func flagValue(c *cli.Context, f cli.Flag) string {
	name := f.Names()[0]
	if doc, ok := f.(cli.DocGenerationFlag); ok && !c.IsSet(name) && doc.GetDefaultText() != "" && name != "state-dir" {
		return strings.Trim(doc.GetDefaultText(), `"`)
	}
	if v, ok := c.Value(name).(cli.StringSlice); ok {
		return strings.Join(v.Value(), ",")
	}
	return fmt.Sprint(c.Value(name))
}

func printSettings(w io.Writer, settings []givenOption) error {
	t := textTable{}
	t.add("SETTING", "VALUE", "FROM")
	for _, s := range settings {
		t.add(s.Name, printable(s.Value), s.From)
	}
	return t.print(w, colours(w))
}

// checkListener returns the error with which serve refuses an address of --listen, before it
// tries to listen on it.
func (o options) checkListener(given string, guard *credentials.Server) error {
	network, address, err := splitAddr(given)
	switch {
	case err != nil:
		return usageError("--listen: %w", err)
	case network == "tcp":
		return o.mayListen(given, address, guard)
	}
	return nil
}
