package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
)

func seqPurge(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "purge",
		Usage:     "forget the names of deleted sequences",
		UsageText: "flaked seq purge --zk HOST:PORT NAME|--all [flags]",
		ArgsUsage: "NAME",
		Description: `Removes what ZooKeeper keeps of a deleted sequence. Then nothing remembers which values
were issued: a new sequence with this name begins at its own start, and issues old
values again. The command is refused until the longest hold of the sequence has passed since its
deletion, because nodes that are cut off may issue its values until then. It says when
it is possible. It must be confirmed: type the words that it asks for on a terminal, or
give them with --confirm.

Examples:
  flaked seq purge --zk zk1:2181 order
  flaked seq purge --zk zk1:2181 order --confirm 'forget the values of order'
  flaked seq purge --all --dry-run
  flaked seq purge --all --confirm 'forget the values of 3 sequences'`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "all deleted sequences that may be purged now", DisableDefaultText: true, Category: callFlags},
			dryRunFlag(), confirmFlag(), outputFlag(),
		}, zkFlags("")...),
		Action: func(c *cli.Context) error {
			name := ""
			switch all := c.Bool("all"); {
			case all && c.NArg() > 0:
				return usageError("--all and %q are both given. Give one of them", c.Args().First())
			case !all:
				var err error
				if name, err = sequenceArgument(c); err != nil {
					return err
				}
			}
			return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error {
				report, err := purge(ctx, c, o, name)
				if err != nil {
					return err
				}
				return show(c, report, func(w io.Writer) error {
					_, err := fmt.Fprintln(w, report.text(time.UnixMilli(o.Now())))
					return err
				})
			})
		},
	}
}

// purgeReport is the JSON of `flaked seq purge`.
type purgeReport struct {
	DryRun bool `json:"dry_run"`
	// Purged are the sequences that this call has forgotten, or would forget.
	Purged []string `json:"purged"`
	// TooEarly are the deleted sequences that must be kept for now. Only --all lists them.
	TooEarly []keptSequence `json:"too_early"`
}

type keptSequence struct {
	Name string `json:"name"`
	// PurgeableMs is the time from which the sequence may be purged, in Unix milliseconds.
	PurgeableMs int64 `json:"purgeable_ms"`
}

// purge forgets the sequence with this name. If name is empty, it forgets all that may be forgotten.
func purge(ctx context.Context, c *cli.Context, o seqstore.Operator, name string) (purgeReport, error) {
	report, err := plannedPurge(ctx, o, name)
	report.DryRun = c.Bool("dry-run")
	if err != nil || report.DryRun || len(report.Purged) == 0 {
		return report, err
	}
	words := "forget the values of " + name
	if name == "" {
		words = "forget the values of " + count(int64(len(report.Purged)), "sequence")
	}
	if err := confirm(c, "nothing will remember which values were issued by "+listed(report.Purged)+". New sequences with these names issue old values again", words); err != nil {
		return report, err
	}
	for _, n := range report.Purged {
		err := o.Purge(ctx, n)
		if err != nil && (name != "" || !errors.Is(err, seqstore.ErrNotFound)) { // with --all, somebody else may have purged it
			return report, ofSequence(n, err)
		}
	}
	return report, nil
}

// plannedPurge returns the report of a purge without errors.
func plannedPurge(ctx context.Context, o seqstore.Operator, name string) (purgeReport, error) {
	report := purgeReport{Purged: []string{}, TooEarly: []keptSequence{}}
	if name == "" {
		found, _, err := o.List(ctx, "")
		if err != nil {
			return report, err
		}
		for _, n := range found {
			switch {
			case n.DeletedAt == 0:
			case o.Now() < n.PurgeableAt():
				report.TooEarly = append(report.TooEarly, keptSequence{n.Name, n.PurgeableAt()})
			default:
				report.Purged = append(report.Purged, n.Name)
			}
		}
		return report, nil
	}
	r, _, err := o.Show(ctx, name)
	switch {
	case err != nil:
		return report, ofSequence(name, err)
	case r.DeletedAt == 0:
		return report, exitWith(exitFailure, "%s: the sequence is in use. `flaked seq delete %[1]s` deletes it", name)
	case o.Now() < r.PurgeableAt():
		return report, exitWith(exitFailure, "%s: nodes that are cut off may issue values of this sequence until %s, %s and %s after it was deleted. Purge it then",
			name, clusterview.Instant(r.PurgeableAt(), time.UnixMilli(o.Now())), millis(r.LongestHoldMs()), sequence.ClocksApart)
	}
	report.Purged = []string{name}
	return report, nil
}

func (p purgeReport) text(now time.Time) string {
	text := ""
	switch {
	case len(p.Purged) == 0:
		text = "no deleted sequence may be purged now"
	case p.DryRun:
		text = fmt.Sprintf("%s may be purged: %s. Nothing was changed", count(int64(len(p.Purged)), "sequence"), listed(p.Purged))
	default:
		text = fmt.Sprintf("purged %s: %s", count(int64(len(p.Purged)), "sequence"), listed(p.Purged))
	}
	for _, kept := range p.TooEarly {
		text += fmt.Sprintf("\n%s may be purged from %s on", kept.Name, clusterview.Instant(kept.PurgeableMs, now))
	}
	return text
}
