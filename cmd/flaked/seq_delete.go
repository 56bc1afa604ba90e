package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/seqstore"
)

func seqDelete(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete a named sequence, and keep its name reserved",
		UsageText: "flaked seq delete --zk HOST:PORT NAME [flags]",
		ArgsUsage: "NAME",
		Description: `Deletes a sequence. Connected nodes refuse requests for it from their next heartbeat on.
Nodes that are cut off from ZooKeeper may issue its values for as long as its hold. Its
name is kept: a sequence that is created with it goes on above all the old values.
` + "`flaked seq purge`" + ` forgets the name. The command must be confirmed: type the words that it
asks for on a terminal, or give them with --confirm.

` + waitText + `

Examples:
  flaked seq delete --zk zk1:2181 order
  flaked seq delete --zk zk1:2181 order --confirm 'delete sequence order'`,
		Flags: append([]cli.Flag{waitFlag(), confirmFlag(), outputFlag()}, zkFlags("")...),
		Action: func(c *cli.Context) error {
			name, err := sequenceArgument(c)
			if err != nil {
				return err
			}
			limit, err := waitGiven(c)
			if err != nil {
				return err
			}
			return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error {
				w := changeWaiter{c, o.Now, name, limit}
				report, late, err := deleteSequence(ctx, w, w.waiting(o))
				if err != nil {
					return ofSequence(name, err)
				}
				err = show(c, report, func(w io.Writer) error {
					_, err := fmt.Fprintln(w, report.Text)
					return err
				})
				return cmp.Or(err, late)
			})
		},
	}
}

// deleteSequence deletes a sequence. late is an error for after the output.
func deleteSequence(ctx context.Context, w changeWaiter, o seqstore.Operator) (report seqChange, late, err error) {
	name := w.name
	r, st, err := o.Show(ctx, name)
	if err != nil {
		return seqChange{}, nil, err
	}
	before := describeSequence(name, r, st, o.Now())
	report = seqChange{Before: &before, After: before}
	if r.DeletedAt != 0 {
		report.Text = fmt.Sprintf("sequence %s was deleted before, at %s. Nothing was changed.", name, clusterview.Instant(r.DeletedAt, time.UnixMilli(o.Now())))
		return report, nil, nil
	}
	err = confirm(w.c, fmt.Sprintf("connected nodes will refuse requests for %s, whose next value is %s. Nodes that are cut off may issue its values for up to %s", name, strings.ReplaceAll(before.nextText(), "-", "above its max"), millis(r.LongestHoldMs())), "delete sequence "+name)
	if err != nil {
		return report, nil, err
	}
	if r, err = o.Delete(ctx, name); err != nil {
		return report, nil, err
	}
	report.Changed, report.After = true, describeSequence(name, r, st, o.Now())
	report.Text = fmt.Sprintf("deleted sequence %s. Its name is kept, and goes on above the old values if it is created again. `flaked seq purge %[1]s` can forget it from %s on.",
		name, clusterview.Instant(r.PurgeableAt(), time.UnixMilli(o.Now())))
	err, late = w.followed(ctx, o, r, &report)
	return report, late, err
}
