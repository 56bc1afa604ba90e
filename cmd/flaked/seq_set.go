package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

func seqSetCommand() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "change a named sequence",
		ArgsUsage: "NAME",
		Description: `Changes what is given, nothing else, and prints it before and after. Connected nodes
follow at their next heartbeat. The max and the next value can only become higher.

--next skips all values below VALUE for good. It must be confirmed. Without --confirm, the
command prints the words that it needs. A scattered sequence needs --next-position instead.
Each node that holds a worker must be connected and follow. If one is not, the words name it:
should ZooKeeper be restored to a copy from before, that node may issue values that others had.
Of a template, --next is the first value of all sequences that it creates from then on. Of a
family, all sections change together.

After ZooKeeper has lost data, a sequence skips all values that may have been issued, or is
frozen. --next VALUE --vouch-after-loss ends both. Use it only if you know that no value from
VALUE on was issued: otherwise values are issued twice. Choose a VALUE well above the highest
one that programs have seen.

Examples:
  flaked seq set --zk zk1:2181 order --ceiling 50000 --block 1024
  flaked seq set order --next 5000 --confirm 'skip values of order below 5000'
  flaked seq set 'order:*' --max-names 20000
  flaked seq set order --next 5000 --vouch-after-loss \
    --confirm 'order is unused from 5000 on in incarnation 2'`,
		Flags: slices.Concat(inCategory(categoryCommandLineOnly,
			&cli.Int64Flag{Name: "next", Usage: "skip all values below `VALUE`", DefaultText: unchanged},
			&cli.Int64Flag{Name: "next-position", Usage: "skip all positions below `POSITION`", DefaultText: unchanged},
			&cli.BoolFlag{Name: "vouch-after-loss", DisableDefaultText: true,
				Usage: "with --next or --next-position: no value from there on was issued, although ZooKeeper has " +
					"lost data or a clock was wrong"},
			maxFlag(unchanged, ""), maxNamesFlag(unchanged), confirmFlag(),
		), sequenceFlags(false), zkFlags("")),
		Action: onSequence(seqSet),
	}
}

func seqSet(c *cli.Context, o operator.Commands, name string) error {
	change, err := readChange(c)
	if err != nil {
		return err
	}
	r, state, err := o.Find(c.Context, name)
	if err != nil {
		return err
	}
	if c.Bool("vouch-after-loss") {
		if r.Incarnation == state.Incarnation {
			return failure("%s: --vouch-after-loss: the sequence is not affected by a loss of data, so "+
				"there is nothing to vouch for. Leave the flag out", name)
		}
		change.VouchedIn = state.Incarnation
	}
	return changeSequence(c, o, r, state, change, "")
}

// readChange returns the change that the command line describes.
func readChange(c *cli.Context) (change operator.Change, err error) {
	hold, err := readHold(c)
	if err != nil {
		return change, err
	}
	change.Settings = func(s *record.Settings) { applySequenceFlags(c, hold, s) }
	changing := []string{"next", "next-position", "max", "max-names", "block", "hold", "ceiling"}
	switch {
	case c.IsSet("next") && c.IsSet("next-position"):
		return change, usageError("--next and --next-position are both given. Give one of them")
	case c.Bool("vouch-after-loss") && !c.IsSet("next") && !c.IsSet("next-position"):
		return change, usageError("--vouch-after-loss needs --next VALUE or --next-position POSITION")
	case !slices.ContainsFunc(changing, c.IsSet):
		return change, usageError("nothing to change. Give at least one flag, such as --ceiling")
	case c.Int64("next") < 0:
		return change, usageError("--next must be 0 or more, not %d", c.Int64("next"))
	}
	if c.IsSet("max") {
		top, err := parseMax(c.String("max"))
		if err != nil {
			return change, err
		}
		change.Max = &top
	}
	for flag, to := range map[string]**int64{
		"max-names": &change.MaxNames, "next": &change.Next, "next-position": &change.NextPosition,
	} {
		if c.IsSet(flag) {
			*to = new(c.Int64(flag))
		}
	}
	return change, nil
}
