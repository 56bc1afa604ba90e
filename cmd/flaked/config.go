package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
)

// loadConfig reads the file that --config names. The file sets the flags that neither the
// command line nor the environment gives. Its keys are the names of the flags of all commands,
// so that one file serves every command. A key that no command has is an error, so that a
// misspelt key is noticed.
func loadConfig(c *cli.Context) error {
	file := c.String("config")
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return unreadableError("--config", err)
	}
	var settings map[string]yaml.Node // an error if a key stands twice
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&settings); err != nil && !errors.Is(err, io.EOF) {
		return usageError("--config %s: expected lines such as `zk: host:2181`: %w", file, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return usageError("--config %s: it has more than one YAML document. Keep one", file)
	}
	all := allFlags(c.App.Commands)
	var wrong []error
	for _, name := range slices.SortedFunc(maps.Keys(settings),
		func(a, b string) int { return settings[a].Line - settings[b].Line }) {
		if err := setFromFile(c, all, name, settings[name]); err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %s: %w", settings[name].Line, name, err))
		}
	}
	if len(wrong) > 0 {
		return usageError("--config %s: %w", file, errors.Join(wrong...))
	}
	return nil
}

// pathFlags matches the names of the flags whose value is a path.
var pathFlags = regexp.MustCompile(`^config$|-(dir|file|ca|cert|key)$`)

// checkPaths refuses ~ at the beginning of a path. Only a shell replaces it, and not in quotes, --flag=~/x, the
// environment or a file: the node would use a directory of this name below its own.
func checkPaths(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if path := c.String(name); pathFlags.MatchString(name) && strings.HasPrefix(path, "~") {
			return usageError("--%s %s: a shell replaces ~ only at the beginning of a word, without quotes. Write the "+
				"whole path, such as /home/me/x, or ./%[2]s for a file of this name", name, path)
		}
	}
	return nil
}

// setFromFile sets the flag of this name to a value of the file. It sets nothing if this command has no such flag, or
// if the command line or the environment gives the flag.
func setFromFile(c *cli.Context, all map[string]cli.Flag, name string, value yaml.Node) error {
	flag := all[name]
	if flag == nil {
		if all[name+"-file"] != nil {
			return fmt.Errorf("secrets are not allowed here. Put the secret into its own file, and name that file "+
				"with %s-file", name)
		}
		return errors.New("no such setting. Use the name of a flag, without dashes in front")
	}
	var values []string
	if slice, ok := flag.(cli.DocGenerationSliceFlag); ok && slice.IsSliceFlag() && value.Kind == yaml.SequenceNode {
		if value.Decode(&values) != nil {
			return errors.New("expected a text or a list of texts")
		}
	} else if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
		return errors.New("expected one value, not a list or a mapping")
	} else {
		values = []string{value.Value}
	}
	if name == "listen" && len(values) > 0 {
		c.App.Metadata[listenOfFile] = values[0]
	}
	mine := flagNamed(c.Command.Flags, name)
	if mine == nil || commandLineOnly(mine) || c.IsSet(name) {
		return nil
	}
	for _, v := range values {
		if err := c.Set(name, v); err != nil {
			return fmt.Errorf("%q is not %s", v, typeTexts[typeOf(flag)])
		}
	}
	c.App.Metadata[name] = fromFile
	return nil
}

// fromFile marks a flag whose value comes from the file of --config, or follows from another setting. App.Metadata has
// it under the flag's name.
const fromFile = "from the file"

// listenOfFile is the key in App.Metadata of the first address at which the node listens by the file of --config.
const listenOfFile = "the first listen of the file"

// askOwnNode lets a command without --addr ask the node whose file or environment it was given.
func askOwnNode(c *cli.Context) error {
	addr := flagNamed(c.Command.Flags, "addr")
	if addr == nil || commandLineOnly(addr) || c.IsSet("addr") {
		return nil
	}
	c.App.Metadata["addr"] = fromFile
	return c.Set("addr", ownNode(c))
}

// ownNode returns the address of the node that the environment or the file of --config is for: FLAKED_ADDR, or the
// first of the addresses at which it listens.
func ownNode(c *cli.Context) string {
	listen, _ := c.App.Metadata[listenOfFile].(string)
	first, _, _ := strings.Cut(os.Getenv(variableOf("listen")), ",")
	listen = cmp.Or(strings.TrimSpace(first), listen, defaultAddr)
	for all, own := range map[string]string{"0.0.0.0:": "127.0.0.1:", "[::]:": "[::1]:"} { // a certificate may name own
		if port, found := strings.CutPrefix(listen, all); found {
			listen = own + port
		}
	}
	return cmp.Or(os.Getenv(variableOf("addr")), listen)
}

// onCommandLine reports whether the command line gives the value of a flag.
func onCommandLine(c *cli.Context, name string) bool {
	return c.IsSet(name) && !fromEnvironment(c, name) && c.App.Metadata[name] != fromFile
}

// allFlags returns the flags of all commands that a file may set, by name.
func allFlags(commands []*cli.Command) map[string]cli.Flag {
	all := map[string]cli.Flag{}
	for _, cmd := range commands {
		for name, f := range allFlags(cmd.Subcommands) {
			all[name] = f
		}
		for _, f := range cmd.Flags {
			if name := f.Names()[0]; name != "config" && !commandLineOnly(f) {
				all[name] = f
			}
		}
	}
	return all
}

// commandLineOnly reports whether a flag is taken neither from a file nor from the
// environment. A confirmation of one call must not confirm all calls. --addr of status must
// not keep every call from ZooKeeper.
func commandLineOnly(f cli.Flag) bool {
	of, ok := f.(cli.CategorizableFlag)
	return f.Names()[0] == "help" || ok && of.GetCategory() == categoryCommandLineOnly
}
