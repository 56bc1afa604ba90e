package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/seqstore"
	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/sequence"
)

// storeOpener calls f with a connection to ZooKeeper, and closes the connection when f returns.
type storeOpener func(c *cli.Context, f func(context.Context, zkstore.Store) error) error

func seqCommand(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:  "seq",
		Usage: "create, show and change named sequences",
		Subcommands: []*cli.Command{
			seqCreate(open), seqList(open), seqShow(open), seqSet(open), seqRecover(open), seqDelete(open), seqPurge(open), seqNext(),
		},
	}
}

// sequences calls f with the commands of an operator on the cluster's sequences.
func (open storeOpener) sequences(c *cli.Context, f func(context.Context, seqstore.Operator) error) error {
	return open(c, func(ctx context.Context, store zkstore.Store) error {
		g := seqGuard{c, func() int64 { return time.Now().UnixMilli() }}
		err := f(ctx, seqstore.Operator{Store: store, Now: g.now, By: whoami(), Guard: g.check})
		if errors.Is(err, seqstore.ErrNoState) {
			if _, missing := coordinator.ReadCluster(ctx, store); missing != nil {
				return missing
			}
		}
		return err
	})
}

// ofOne is sequences for the commands whose only argument is the name of a sequence or a template. It adds the name to
// errors about the sequence.
func (open storeOpener) ofOne(c *cli.Context, f func(ctx context.Context, o seqstore.Operator, name string) error) error {
	name, err := sequenceArgument(c)
	if err != nil {
		return err
	}
	return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error { return ofSequence(name, f(ctx, o, name)) })
}

// sequenceArgument returns the only argument, which must be the name of a sequence or a template.
func sequenceArgument(c *cli.Context) (string, error) {
	if c.NArg() != 1 {
		return "", usageError("expected one sequence, as in `%s order`, got %d arguments", c.Command.HelpName, c.NArg())
	}
	name := c.Args().First()
	check := sequence.CheckName[string]
	if sequence.IsTemplate(name) {
		check = sequence.CheckTemplate
	}
	if err := check(name); err != nil {
		return "", usageError("%w", err)
	}
	return name, nil
}

// ofSequence adds the name of the sequence to an error about it.
func ofSequence(name string, err error) error {
	var refused seqstore.ChangeError
	if errors.As(err, &refused) {
		return exitWith(exitFailure, "%s: --%w. Nothing was changed", name, err)
	}
	for _, is := range []error{seqstore.ErrExists, seqstore.ErrNotFound, seqstore.ErrStartNeeded, seqstore.ErrTooEarly, errNotFollowed} {
		if errors.Is(err, is) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return err
}
