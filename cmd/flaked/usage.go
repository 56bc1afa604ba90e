package main

import (
	"regexp"
	"slices"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// The errors of package flag.
var (
	unknownFlag  = regexp.MustCompile(`^flag provided but not defined: -+(.+)$`)
	missingValue = regexp.MustCompile(`^flag needs an argument: -+(.+)$`)
	twoForms     = regexp.MustCompile(`^Cannot use two forms of the same flag: (\S+) (\S+)$`) // package cli's
	badValue     = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-+([a-z0-9-]+): (.*)$`)
)

// onUsageError rewords an error of the library, with flags as people write them.
func onUsageError(c *cli.Context, err error, _ bool) error {
	return withHelp(c, inOurWords(c, err.Error()))
}

// inOurWords returns a usage error for a text of the library.
func inOurWords(c *cli.Context, text string) error {
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		return usageError("there is no flag %s%s", dashed(m[1]), suggestFlag(c.Command.Flags, m[1]))
	}
	if m := missingValue.FindStringSubmatch(text); m != nil {
		return usageError("%s needs a value", dashed(m[1]))
	}
	if m := twoForms.FindStringSubmatch(text); m != nil {
		return usageError("%s and %s are the same flag. Give it once", dashed(m[1]), dashed(m[2]))
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		return usageError("%s: %s is not %s", dashed(m[2]), m[1], typeTexts[typeOf(flagNamed(c.Command.Flags, m[2]))])
	}
	return usageError("%s", text)
}

// suggestCommand returns a sentence that names the command which somebody may have meant, "" if none is near.
func suggestCommand(commands []*cli.Command, given string) string {
	for _, cmd := range commands {
		if isNear(cmd.Name, given) {
			return ". The nearest is " + cmd.Name
		}
	}
	return ""
}

// suggestFlag is suggestCommand for a flag.
func suggestFlag(flags []cli.Flag, given string) string {
	for _, f := range flags {
		if name := f.Names()[0]; isNear(name, given) {
			return ". The nearest is " + dashed(name)
		}
	}
	return ""
}

// isNear reports whether few letters of given must change to make it name: at most every third, and one of a short
// word.
func isNear(name, given string) bool {
	return smetrics.WagnerFischer(name, given, 1, 1, 1) <= max(1, len(given)/3)
}

func flagNamed(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// typeTexts maps the library's names of types to ours.
var typeTexts = map[string]string{
	"bool": "true or false", "int": "a whole number", "float64": "a number",
	"duration": "a duration such as 500ms, 10s or 24h", "string": "a text",
}

// typeOf returns the library's name of the type of a flag's value. All integers are "int".
func typeOf(f cli.Flag) string {
	switch f.(type) {
	case *cli.BoolFlag:
		return "bool"
	case *cli.IntFlag, *cli.Int64Flag, *cli.UintFlag, *cli.Uint64Flag:
		return "int"
	case *cli.Float64Flag:
		return "float64"
	case *cli.DurationFlag:
		return "duration"
	}
	return "string"
}
