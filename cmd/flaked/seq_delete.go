package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

func seqDeleteCommand() *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete a named sequence, and keep its name reserved",
		ArgsUsage: "NAME",
		Description: `Deletes a sequence, or a family with all its names. Connected nodes refuse requests for it
from their next heartbeat on.
Its name is kept: a sequence that is created with it goes on above all the old values.
` + "`flaked seq purge`" + ` forgets the name. The command must be confirmed. Without
--confirm, it prints the words that it needs.

Examples:
  flaked seq delete --zk zk1:2181 order --confirm 'delete sequence order'`,
		Flags:  append([]cli.Flag{confirmFlag()}, zkFlags("")...),
		Action: onSequence(seqDelete),
	}
}

func seqDelete(c *cli.Context, o operator.Commands, name string) error {
	n, state, err := o.Find(c.Context, name)
	if err != nil {
		return err
	}
	r, now := n.Record, o.Now()
	if r.Kind() == record.Tombstone {
		return printText(c, "sequence %s was deleted before, at %s. Nothing was changed.\n", name,
			words.Moment(r.DeletedAt, time.UnixMilli(now)))
	}
	next := strings.ReplaceAll(nextText(health.RecordedReport(n, state, now)), "-", "above its max")
	what := name
	if r.Kind() == record.Family {
		what = "all names of " + name
	}
	until := "for up to " + millis(r.LongestHoldMs()).String()
	if endless(r.LongestHoldMs()) {
		until = "until they reach ZooKeeper"
	}
	risk := fmt.Sprintf("connected nodes will refuse requests for %s, whose next value is %s. "+
		"Nodes that are cut off may issue its values %s", what, next, until)
	if err := confirm(c, risk, "delete sequence "+name); err != nil {
		return err
	}
	if r, err = o.Delete(c.Context, name); err != nil {
		return err
	}
	text := "deleted sequence %s. Its name is kept, and goes on above the old values if it is created again. "
	if left := r.IssuableFor(state); left == record.Forever {
		text += "It can never be purged, because its hold was " + forever + "."
	} else {
		text += "`flaked seq purge %[1]s` can forget it after " + left.String() + "."
	}
	return printText(c, text+"\n", name)
}

func seqPurgeCommand() *cli.Command {
	return &cli.Command{
		Name:      "purge",
		Usage:     "forget the name of a deleted sequence",
		ArgsUsage: "NAME",
		Description: `Removes what ZooKeeper keeps of a deleted sequence. Then nothing remembers which values
were issued: a new sequence with this name begins at its own start, and issues old
values again. The command is refused while nodes that are cut off may issue its values: for its
longest hold and 30 s, of which only the time counts in which nodes are connected. The command
must be confirmed. Without --confirm, it prints the words that it needs. They name each worker
whose node is not connected: should ZooKeeper be restored to a copy from before, that node may
issue values that others had.

Examples:
  flaked seq purge --zk zk1:2181 order --confirm 'forget the values of order'`,
		Flags:  append([]cli.Flag{confirmFlag()}, zkFlags("")...),
		Action: onSequence(seqPurge),
	}
}

func seqPurge(c *cli.Context, o operator.Commands, name string) error {
	r, state, err := o.Find(c.Context, name)
	switch {
	case err != nil:
		return err
	case r.Kind() != record.Tombstone:
		return failure("%s: the sequence is in use. `flaked seq delete %[1]s` deletes it", name)
	case r.IssuableFor(state) == record.Forever:
		return failure("%s: nodes that are cut off may issue values of this sequence for good, because its hold was "+
			"%s. So it cannot be purged. `flaked seq create %[1]s` creates it again, above its old values", name, forever)
	case r.IssuableFor(state) > 0:
		return failure("%s: nodes that are cut off may issue values of this sequence for another %s. "+
			"Purge it then. Only time in which nodes are connected counts", name, r.IssuableFor(state))
	}
	risk := "nothing will remember which values were issued by " + name +
		". A new sequence with this name issues old values again"
	var absent []coordinator.Entry
	if r.GoesOnAlone() {
		if absent, err = allowAbsent(c, &o); err != nil {
			return err
		}
	}
	if err := confirmDespiteAbsent(c, absent, risk, "forget the values of "+name); err != nil {
		return err
	}
	if err := o.Purge(c.Context, name); err != nil {
		return err
	}
	return printText(c, "purged sequence %s\n", name)
}
