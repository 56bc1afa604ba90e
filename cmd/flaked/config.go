package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

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
		return unreadable("--config", err)
	}
	if err := applyConfig(c, text); err != nil {
		return usageError("--config %s: %w", file, err)
	}
	return nil
}

func applyConfig(c *cli.Context, text []byte) error {
	settings, err := parseConfig(text)
	if err != nil {
		return err
	}
	all := allFlags(c.App.Commands)
	var wrong []error
	for _, s := range settings {
		if err := applySetting(c, all[s.key.Value], s, all); err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %s: %w", s.key.Line, s.key.Value, err))
		}
	}
	return errors.Join(wrong...)
}

// applySetting sets the flag of a setting. flag is nil if no command has it.
func applySetting(c *cli.Context, flag cli.Flag, s setting, all map[string]cli.Flag) error {
	if flag == nil {
		if err := removedFlag(c, s.key.Value); err != nil {
			return err
		}
		if all[s.key.Value+"-file"] != nil {
			return fmt.Errorf("secrets are not allowed here. Put the secret into its own file, and name that file with %s-file", s.key.Value)
		}
		return errors.New("no such setting. Use the name of a flag, without dashes in front")
	}
	values, err := configValues(flag, s.value)
	if err != nil {
		return err
	}
	if f := flagNamed(c.Command.Flags, s.key.Value); f == nil || commandLineOnly(f) || c.IsSet(s.key.Value) {
		return nil // another command's, or given elsewhere
	}
	for _, v := range values {
		if err := c.Set(s.key.Value, v); err != nil {
			return err
		}
	}
	c.App.Metadata[fileSet+s.key.Value] = true
	return nil
}

// fileSet is the prefix of keys of App.Metadata that record the flags that the file set. The
// library records that a flag is set, but not by what.
const fileSet = "set by the file: "

// setByFile reports whether the value of a flag is the settings file's.
func setByFile(c *cli.Context, flag string) bool { return c.App.Metadata[fileSet+flag] != nil }

type setting struct{ key, value *yaml.Node }

// parseConfig returns the settings in a YAML document, which is one mapping or empty.
func parseConfig(text []byte) ([]setting, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one YAML document. Keep one")
	}
	top := doc.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: expected lines such as `zk: host:2181`", top.Line)
	}
	var settings []setting
	lines := map[string]int{}
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if line := lines[key.Value]; line != 0 {
			return nil, fmt.Errorf("line %d: %s is a duplicate of line %d", key.Line, key.Value, line)
		}
		lines[key.Value] = key.Line
		settings = append(settings, setting{key, value})
	}
	return settings, nil
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
	if of, ok := f.(cli.CategorizableFlag); ok && of.GetCategory() == callFlags {
		return true
	}
	doc, ok := f.(cli.DocGenerationFlag)
	switch f.Names()[0] {
	case "addr", "help", "confirm", "release", "state-dir", "workers", "yes", "zk-replaced":
		return ok && len(doc.GetEnvVars()) == 0
	}
	return false
}

// configValues returns the values to set a flag to, one after the other. It returns an error if
// v is not of the flag's type.
func configValues(f cli.Flag, v *yaml.Node) ([]string, error) {
	if slice, ok := f.(cli.DocGenerationSliceFlag); ok && slice.IsSliceFlag() {
		return listValues(v)
	}
	if v.Kind != yaml.ScalarNode {
		return nil, errors.New("expected one value, not a list or a mapping")
	}
	ok, kind := false, kindOf(f)
	want := kinds[kind]
	switch kind {
	case "bool":
		ok = v.Tag == "!!bool"
	case "int":
		_, err := strconv.ParseInt(v.Value, 10, 64)
		ok = v.Tag == "!!int" && err == nil
	case "float64":
		ok = v.Tag == "!!int" || v.Tag == "!!float"
	case "duration":
		_, err := time.ParseDuration(v.Value)
		ok = err == nil
	default:
		ok, want = v.Tag == "!!str", want+". Put it into quotes"
	}
	if !ok {
		return nil, fmt.Errorf("%q is not %s", v.Value, want)
	}
	return []string{v.Value}, nil
}

func listValues(v *yaml.Node) ([]string, error) {
	items := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		items = v.Content
	}
	var values []string
	for _, item := range items {
		if item.Kind == yaml.AliasNode {
			item = item.Alias
		}
		if item.Kind != yaml.ScalarNode || item.Tag != "!!str" {
			return nil, fmt.Errorf("line %d: expected a text or a list of texts", item.Line)
		}
		values = append(values, item.Value)
	}
	return values, nil
}

// origin is where the value of a flag comes from.
type origin uint8

const (
	notGiven      origin = iota
	inSettings           // the environment or a file, which are for other commands too
	onCommandLine        // meant for this call
)

// originOf returns where a text flag's value comes from. A value that equals the
// environment's counts as the environment's: the library does not tell them apart.
func originOf(c *cli.Context, name string) origin {
	switch {
	case !c.IsSet(name):
		return notGiven
	case setByFile(c, name), os.Getenv(envName(name)) == c.String(name):
		return inSettings
	}
	return onCommandLine
}
