package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
	"github.com/flaked/flaked/sequence"
)

// seqClock is the clock of the commands, nil for that of the machine. Only tests change it.
var seqClock operator.Clock

func seqCommand() *cli.Command {
	return &cli.Command{
		Name:  "seq",
		Usage: "create, show and change named sequences",
		Subcommands: []*cli.Command{
			seqCreateCommand(), seqListCommand(), seqShowCommand(), seqSetCommand(), seqRecoverCommand(),
			seqDeleteCommand(), seqPurgeCommand(), // for operators
			seqNextCommand(),
		},
	}
}

// withSequences calls f with the commands of an operator on the cluster's sequences.
func withSequences(c *cli.Context, f func(operator.Commands) error) error {
	return withStore(c, func(st store.Store) error {
		err := f(operator.Commands{Store: st, Clock: seqClock, By: whoami(), OnWait: func() {
			fmt.Fprintf(c.App.ErrWriter, "flaked: waiting up to %s until the nodes have followed\n", operator.GuardTime)
		}})
		if errors.Is(err, operator.ErrNoState) {
			if _, missing := coordinator.ReadCluster(c.Context, st); missing != nil {
				return missing
			}
		}
		return err
	})
}

// onSequence returns the action of a command whose only argument is the name of a sequence or a template. It adds the
// name to errors about the sequence.
func onSequence(f func(c *cli.Context, o operator.Commands, name string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		name, err := sequenceArgument(c)
		if err != nil {
			return err
		}
		return withSequences(c, func(o operator.Commands) error { return withSequenceName(name, f(c, o, name)) })
	}
}

// sequenceArgument returns the only argument, which must be the name of a sequence or a template.
func sequenceArgument(c *cli.Context) (string, error) {
	if c.NArg() != 1 {
		return "", usageError("expected one sequence, as in `%s order`, got %d arguments", c.Command.HelpName, c.NArg())
	}
	return c.Args().First(), checkSequence(c.Args().First())
}

// checkSequence returns an error unless a sequence or a template may have this name.
func checkSequence(name string) error {
	check := sequence.CheckName[string]
	if positions.IsPattern(name) {
		check = positions.CheckPattern
	}
	if err := check(name); err != nil {
		return usageError("%w", err)
	}
	return nil
}

// notFollowedError returns an error that says which nodes a jump has waited for, and what to do.
func notFollowedError(name string, late *operator.NotFollowedError) error {
	switch {
	case late.Made:
		return failure("%s: %w within %s: %s. Connect them, or look at the log there. Until they have followed, do "+
			"not restore ZooKeeper to a copy from before: they may issue values that others had", name, late,
			operator.GuardTime, namesOf(append(late.Behind, late.Absent...)))
	case len(late.Absent) > 0:
		return failure("%s: %w. Nothing was changed. Missing: %s. Start or connect them, or wait until their leases "+
			"are over. If a node is gone for good: `flaked workers release`", name, late, leasesText(late.Absent))
	}
	return failure("%s: %w within %s. Nothing was changed. Connected, but behind: %s. "+
		"Look at the log there, or restart the node", name, late, operator.GuardTime, namesOf(late.Behind))
}

// namesOf returns the numbers of the workers in entries, and the names of their nodes.
func namesOf(entries []coordinator.Entry) string {
	var names []string
	for _, e := range entries {
		names = append(names, health.Whom([]health.WorkerReport{{Worker: e.Worker, Name: e.Slot.Name}}))
	}
	return words.List(names, len(names))
}

// leasesText is namesOf, with the end of each lease.
func leasesText(entries []coordinator.Entry) string {
	var names []string
	for _, e := range entries {
		until := " until " + time.UnixMilli(e.Slot.LeaseUntil).UTC().Format(words.TimeFormat)
		if e.Slot.Term < 0 {
			until = ", whose record is missing or damaged"
		}
		names = append(names, namesOf([]coordinator.Entry{e})+until)
	}
	return words.List(names, len(names))
}

// withSequenceName adds the name of the sequence to an error about it.
func withSequenceName(name string, err error) error {
	if _, refused := errors.AsType[operator.ChangeError](err); refused {
		return failure("%s: --%w. Nothing was changed", name, err)
	}
	if late, is := errors.AsType[*operator.NotFollowedError](err); is {
		return notFollowedError(name, late)
	}
	if errors.Is(err, operator.ErrMade) { // also if the operator has ended the command while it waited
		why := "interrupted"
		if !errors.Is(err, context.Canceled) {
			why = strings.TrimPrefix(err.Error(), operator.ErrMade.Error()+": ")
		}
		return failure("%s: %w: %s. `flaked doctor` names those that run and have not", name, operator.ErrMade, why)
	}
	if _, within := errors.AsType[*operator.FamilyError](err); within {
		return failure("%s: %w. Nothing was changed", name, err)
	}
	if sequenceAdvice(err) != "" {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}
