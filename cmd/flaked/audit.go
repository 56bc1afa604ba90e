package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/audit"
	"github.com/flaked/flaked/zkstore"
)

// auditTime is how long a command tries to write its outcome.
const auditTime = 5 * time.Second

func clusterAudit() *cli.Command {
	return &cli.Command{
		Name:      "audit",
		Usage:     "print which commands changed the cluster, when, and by whom",
		UsageText: "flaked cluster audit --zk HOST:PORT [flags]",
		Description: fmt.Sprintf(`Prints the latest %d commands by which people changed the cluster, the oldest first. A
command is written to ZooKeeper before its first change. Nodes log it too, within %s.
Commands that changed nothing are left out. OUTCOME is done, the error, or
  unknown    the command is still running, or it was killed

The list is no proof: everybody who may change the cluster's records may change it, and
a restored ZooKeeper has an older list.

Examples:
  flaked cluster audit --zk zk1:2181
  flaked cluster audit -o json`, audit.Kept, audit.Every),
		Flags: append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
		Action: func(c *cli.Context) error {
			return withStore(c, func(ctx context.Context, store zkstore.Store) error {
				entries, err := audit.List(ctx, store)
				if err != nil {
					return err
				}
				return printAudit(c, entries)
			})
		},
	}
}

func printAudit(c *cli.Context, entries []audit.Entry) error {
	if asJSON(c) {
		return printJSON(c.App.Writer, struct {
			Entries []audit.Entry `json:"entries"`
		}{append([]audit.Entry{}, entries...)})
	}
	if len(entries) == 0 {
		_, err := fmt.Fprintf(c.App.Writer, "no command has changed cluster %s\n", c.String("cluster"))
		return err
	}
	var t textTable
	t.add("TIME", "BY", "OUTCOME", "COMMAND")
	for _, e := range entries {
		outcome := e.Outcome
		if outcome == "" {
			outcome = "unknown"
		}
		t.add(time.UnixMilli(e.AtMs).UTC().Format(time.RFC3339), clusterview.Clean(e.By), clusterview.Clean(outcome), clusterview.Clean(e.Command))
	}
	return t.print(c.App.Writer, false)
}

// recordCommand returns store with an entry for the cluster's audit list.
func recordCommand(c *cli.Context, store zkstore.Store) *audit.Recorder {
	return &audit.Recorder{
		Store: store,
		Entry: audit.Entry{By: whoami(), Command: commandLine(c)},
		Failed: func(err error) {
			fmt.Fprintf(c.App.ErrWriter, "warning: the cluster's audit list lacks this command or its outcome: %v\n", err)
		},
	}
}

// endRecord writes the outcome of the command, also after Ctrl-C.
func endRecord(c *cli.Context, recorder *audit.Recorder, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), auditTime)
	defer cancel()
	recorder.End(ctx, err)
}

// commandLine returns the command with the flags that were given, by argument or variable, and its
// arguments. It leaves out the flags that say how to reach ZooKeeper.
func commandLine(c *cli.Context) string {
	words := []string{c.Command.HelpName}
	for _, flag := range c.Command.Flags {
		name := flag.Names()[0]
		category, _ := flag.(cli.CategorizableFlag)
		if !c.IsSet(name) || category != nil && category.GetCategory() == zkCategory || name == "output" {
			continue
		}
		switch flag.(type) {
		case *cli.BoolFlag:
			words = append(words, "--"+name)
		case *cli.StringSliceFlag:
			for _, value := range c.StringSlice(name) {
				words = append(words, "--"+name, shellWord(value))
			}
		default:
			words = append(words, "--"+name, shellWord(fmt.Sprint(c.Value(name))))
		}
	}
	for _, arg := range c.Args().Slice() {
		words = append(words, shellWord(arg))
	}
	return strings.Join(words, " ")
}

// shellWord returns a word as a shell reads it.
func shellWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
