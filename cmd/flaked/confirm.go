package main

import (
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// confirmFlag returns --confirm, which confirm reads. It is for the command line only, as
// nobody would read the words in a file or in the environment.
func confirmFlag() cli.Flag {
	return inCategory(categoryCommandLineOnly, &cli.StringFlag{Name: "confirm",
		Usage: "`WORDS` that confirm the command. Without them, it prints which words it needs"})[0]
}

// confirm returns nil if --confirm gives the phrase that confirms what is about to be done. The phrase names
// what the command is about to change, so that it confirms nothing else.
func confirm(c *cli.Context, risk, phrase string) error {
	switch given := c.String("confirm"); given {
	case phrase:
		return nil
	case "":
		return usageError("%s. Nothing was changed. To go on, add --confirm %s", risk, quoted(phrase))
	default:
		return usageError("--confirm %q does not match. Nothing was changed. Use --confirm %s", given, quoted(phrase))
	}
}

// quoted returns a text as an argument for a shell. Anybody who can write a record may have chosen a name in it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// whoami returns USER@HOST, which records keep beside what an operator did.
func whoami() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// workersOperator returns the commands of an operator on the workers in st.
func workersOperator(st store.Store) coordinator.Operator {
	return coordinator.Operator{Store: st, Now: func() int64 { return time.Now().UnixMilli() }, By: whoami()}
}
