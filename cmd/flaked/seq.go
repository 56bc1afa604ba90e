package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/zkstore"
)

// storeOpener calls f with a connection to ZooKeeper, and closes the connection when f returns.
type storeOpener func(c *cli.Context, f func(context.Context, zkstore.Store) error) error

func seqCommand(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:  "seq",
		Usage: "create, show and change named sequences",
		Subcommands: []*cli.Command{
			seqCreate(open), seqList(open), seqShow(open), seqSet(open), seqRecover(open), seqDelete(open), seqPurge(open), seqNext(), seqExport(open),
			seqVerify(open), seqKey(open),
		},
	}
}

// sequences calls f with the commands of an operator on the cluster's sequences.
func (open storeOpener) sequences(c *cli.Context, f func(context.Context, seqstore.Operator) error) error {
	return open(c, func(ctx context.Context, store zkstore.Store) error {
		err := f(ctx, seqstore.Operator{Store: store, Now: func() int64 { return time.Now().UnixMilli() }, By: whoami()})
		if errors.Is(err, seqstore.ErrNoState) {
			if _, missing := coordinator.ReadCluster(ctx, store); missing != nil {
				return missing
			}
		}
		return err
	})
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
	for _, is := range []error{seqstore.ErrExists, seqstore.ErrNotFound, seqstore.ErrStartNeeded, seqstore.ErrNoKey, seqstore.ErrTooEarly} {
		if errors.Is(err, is) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return err
}

// withoutWrites returns an operator whose commands decide as usual and write nothing.
func withoutWrites(o seqstore.Operator) seqstore.Operator {
	o.Store = dryStore{o.Store}
	return o
}

// dryStore is a store whose writes change nothing and succeed.
type dryStore struct{ zkstore.Store }

func (dryStore) Create(_ context.Context, path string, _ []byte, _ zkstore.Kind) (string, error) {
	return path, nil
}

func (dryStore) Set(context.Context, string, []byte, int32) (zkstore.Stat, error) {
	return zkstore.Stat{}, nil
}

func (dryStore) Delete(context.Context, string, int32) error { return nil }

func (dryStore) Multi(context.Context, ...zkstore.Op) error { return nil }

func (dryStore) EnsureRoot(context.Context, ...string) error { return nil }
