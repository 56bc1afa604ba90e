package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/poll"
	"github.com/flaked/flaked/internal/ops/words"
)

func clusterFreezeCommand() *cli.Command {
	return &cli.Command{
		Name:  "freeze",
		Usage: "stop new nodes from acquiring workers, after ZooKeeper was restored",
		Description: `Stops new nodes from acquiring workers until every lease that ZooKeeper may have lost
has expired: for a little more than the longest lease, such as 23 minutes more if that is
a day. Nodes do the same by themselves when they notice that ZooKeeper lost data. Use
this command if no connected node could notice it: right after older data were restored,
and before new nodes start. Running nodes continue, and stopped nodes may come back. New
nodes wait or exit. If a longer freeze is in effect, it stays. ` + "`flaked cluster thaw`" + ` ends a freeze.

Examples:
  flaked cluster freeze --zk zk1:2181`,
		Flags:  zkFlags(""),
		Action: clusterFreeze,
	}
}

func clusterThawCommand() *cli.Command {
	return &cli.Command{
		Name:  "thaw",
		Usage: "end a freeze of registration",
		Description: `After ZooKeeper has lost data, its workers are reserved for the holders that it may
have lost: no new node acquires one until all their leases have certainly expired. This
command ends the freeze early, and frees the workers whose records were lost. Use it
only if you know that no such holder can come back: none runs while disconnected, and
none is stopped with its state directory. Otherwise two nodes issue the same IDs. The
command asks the nodes that have a record, and those that these have met. It is refused
while a node runs whose record is missing. It must be confirmed. Without --confirm, it
prints the words that it needs. They name whom nobody could ask.

Examples:
  flaked cluster thaw --zk zk1:2181
  flaked cluster thaw --confirm 'no lost holder of cluster default is left'`,
		Flags:  slices.Concat([]cli.Flag{confirmFlag()}, surveyAccessFlags(), zkFlags("")),
		Action: clusterThaw,
	}
}

func clusterFreeze(c *cli.Context) error {
	return withStore(c, func(st store.Store) error {
		before, after, err := workersOperator(st).Freeze(c.Context, 0)
		if err != nil {
			return err
		}
		name, until := c.String("cluster"), words.Moment(after.FrozenUntil, time.Now())
		text := fmt.Sprintf("froze registration in cluster %s: no new node acquires a worker until %s. "+
			"`flaked cluster thaw` ends the freeze early.", name, until)
		if before == after {
			text = fmt.Sprintf("cluster %s is already frozen for longer, until %s. Nothing was changed.", name, until)
		}
		return printText(c, "%s\n", text)
	})
}

func clusterThaw(c *cli.Context) error {
	nodes, err := readAsker(c)
	if err != nil {
		return err
	}
	return withStore(c, func(st store.Store) error {
		cl, frozen, err := workersOperator(st).Frozen(c.Context)
		if err != nil {
			return err
		}
		if err := confirmThaw(c, st, nodes, cl, frozen); err != nil {
			return err
		}
		freed, err := coordinator.Thaw(c.Context, st, cl)
		if err != nil {
			return err
		}
		name, now := c.String("cluster"), time.Now()
		text := fmt.Sprintf("cluster %s was not frozen", name)
		switch until := words.Moment(cl.FrozenUntil, now); {
		case cl.FrozenUntil > now.UnixMilli():
			text = fmt.Sprintf("ended the freeze of cluster %s: its workers were reserved for their holders until "+
				"%s", name, until)
		case cl.FrozenUntil != 0:
			text = fmt.Sprintf("the freeze of cluster %s had ended by itself: %s", name, until)
		}
		fmt.Fprintln(c.App.Writer, text)
		if freed > 0 {
			fmt.Fprintf(c.App.Writer, "freed %s with a lost record\n", words.Count(int64(freed), "worker"))
		}
		return nil
	})
}

// confirmThaw asks for confirmation if there is a freeze to end or a lost worker to free. The words name whom nobody
// could ask.
func confirmThaw(c *cli.Context, st store.Store, nodes *poll.Asker, cl coordinator.Cluster, frozen bool) error {
	entries, err := coordinator.ReadSlots(c.Context, st, cl)
	if err != nil {
		return err
	}
	if !frozen && !slices.ContainsFunc(entries, func(e coordinator.Entry) bool { return e.Missing || e.Slot.StandsIn }) {
		return nil
	}
	survey, err := poll.AskCluster(c.Context, st, nodes, nil, "")
	if err != nil {
		return err
	}
	if running := survey.Unrecorded(); len(running) > 0 {
		return failure("these nodes run, but ZooKeeper has lost their records: %s. A new node could take their "+
			"workers, and issue the same IDs. Nothing was changed. Connect them to ZooKeeper, so that they put their "+
			"records back, or stop them", strings.Join(running, ", "))
	}
	risk, name := "", c.String("cluster")
	phrase := fmt.Sprintf("no lost holder of cluster %s is left", name)
	if unasked := survey.UnheardText(); unasked != "" {
		risk, phrase = ". Nobody could ask "+unasked, phrase+": not "+unasked
	}
	return confirm(c, fmt.Sprintf("all workers of cluster %s become available to new nodes. If a holder of one of "+
		"them still runs while disconnected, or is ever started with its state directory, IDs will be issued "+
		"twice%s", name, risk), phrase)
}
