package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/zkstore"
)

// waitDefault is the time of a --wait without a value.
const waitDefault = 30 * time.Second

// waitEvery is the time between two looks at the workers.
const waitEvery = 200 * time.Millisecond

const waitText = `--wait ends when all nodes have followed. It exits with 5 if they have not in TIME, and
names them. Nodes that are cut off from ZooKeeper may issue by what they knew before,
until the hold has passed. Before the next value jumps, and before a name is deleted or
created, the command waits by itself until the connected nodes have followed the last
change of that name. If they do not, nothing is changed.`

func waitFlag() cli.Flag {
	return &cli.DurationFlag{Name: "wait", Usage: "wait up to `TIME` (" + waitDefault.String() + " if none is given) until all nodes have followed", DefaultText: "return at once", Category: callFlags}
}

// waitGiven returns --wait, and waitDefault without it.
func waitGiven(c *cli.Context) (time.Duration, error) {
	if !c.IsSet("wait") {
		return waitDefault, nil
	}
	if d := c.Duration("wait"); d > 0 {
		return d, nil
	}
	return 0, usageError("--wait must be more than 0s. Leave it out to return at once")
}

// changeWaiter waits until nodes have followed a change of a sequence.
type changeWaiter struct {
	c    *cli.Context
	now  func() int64
	name string
	time time.Duration
}

// waiting returns o with a guard that waits for the last change of the sequence.
func (w changeWaiter) waiting(o seqstore.Operator) seqstore.Operator {
	o.Guard = func(ctx context.Context, store zkstore.Store, jump seqstore.Jump) ([]zkstore.Op, error) {
		if err := coordinator.CheckSequences(ctx, store, w.now()); err != nil {
			return nil, unfitText(err)
		}
		last := coordinator.Change{At: coordinator.Followed(jump.After), MadeMs: w.now()}
		behind, err := w.until(ctx, func() ([]coordinator.Behind, error) {
			behind, err := notFollowed(ctx, store, last, w.now())
			return connected(behind), err
		})
		if err != nil {
			return nil, err
		}
		if len(behind) > 0 {
			return nil, exitWith(exitFailure, "%s: not all nodes have followed the last change within %s. Nothing was changed. %s", w.name, w.time, behindText(behind, w.now()))
		}
		if !jump.Creates {
			return nil, nil
		}
		op, err := coordinator.RequireSequences(ctx, store, w.now())
		return []zkstore.Op{op}, unfitText(err)
	}
	return o
}

// unfitText says what to do about nodes of a version without sequences.
func unfitText(err error) error {
	var unfit *coordinator.UnfitError
	if !errors.As(err, &unfit) {
		return err
	}
	var nodes []string
	for _, e := range unfit.Nodes {
		nodes = append(nodes, workerText(e))
	}
	return exitWith(exitFailure, "nodes of a version without named sequences run in this cluster, and could hide a loss of data: %s. Upgrade or stop them. Nothing was changed", listed(nodes))
}

// notFollowed returns the workers whose nodes have not followed a change.
func notFollowed(ctx context.Context, store zkstore.Store, change coordinator.Change, now int64) ([]coordinator.Behind, error) {
	cl, err := coordinator.ReadCluster(ctx, store)
	if err != nil {
		return nil, err
	}
	slots, err := coordinator.ReadSlots(ctx, store, cl)
	return coordinator.NotFollowed(slots, change, now), err
}

func connected(behind []coordinator.Behind) (some []coordinator.Behind) {
	for _, b := range behind {
		if b.Connected() {
			some = append(some, b)
		}
	}
	return some
}

// until calls look until it returns nobody, or the time to wait is over. ZooKeeper may fail meanwhile.
func (w changeWaiter) until(ctx context.Context, look func() ([]coordinator.Behind, error)) ([]coordinator.Behind, error) {
	began := time.Now()
	end := began.Add(w.time)
	for said := false; ; {
		behind, err := look()
		if err == nil && len(behind) == 0 || err != nil && !errors.Is(err, zkstore.ErrUnreachable) || time.Now().After(end) {
			return behind, err
		}
		if !said && time.Since(began) > time.Second {
			said = true
			fmt.Fprintf(w.c.App.ErrWriter, "flaked: waiting up to %s until the nodes have followed\n", w.time)
		}
		select {
		case <-ctx.Done():
			return behind, ctx.Err()
		case <-time.After(waitEvery):
		}
	}
}

// waitReport is the part of a change's JSON that --wait adds.
type waitReport struct {
	// Followed is true if no node issues by what it knew before the change.
	Followed bool           `json:"followed"`
	Behind   []behindReport `json:"behind"`
}

type behindReport struct {
	Worker    int    `json:"worker"`
	Name      string `json:"name"`
	Host      string `json:"host"`
	Address   string `json:"address"`
	Version   string `json:"version"`
	Connected bool   `json:"connected"`
	// UntilMs is the time until which a node that is not connected may issue by what it knew
	// before, Unix ms. It is null for the others.
	UntilMs *int64 `json:"until_ms"`
}

// errChangeLost: ZooKeeper does not have the change any more.
var errChangeLost = errors.New("ZooKeeper has lost the change, or an older copy of its data was put back. Look at it with `flaked seq show`, and repeat it if needed")

// followed waits for the nodes if --wait is given. r is the record that was written. The second error is
// for after the output.
func (w changeWaiter) followed(ctx context.Context, o seqstore.Operator, r seqstore.Record, report *seqChange) (err, late error) {
	if !w.c.IsSet("wait") || !report.Changed {
		return nil, nil
	}
	change := coordinator.Change{MadeMs: w.now(), HoldMs: r.LongestHoldMs()}
	behind, err := w.until(ctx, func() ([]coordinator.Behind, error) {
		found, st, err := o.Show(ctx, w.name)
		switch {
		case errors.Is(err, seqstore.ErrNoState), errors.Is(err, seqstore.ErrNotFound), err == nil && (found.Gen < r.Gen || st.Changes+1 < change.At.Changes):
			return nil, exitWith(exitFailure, "%s: %w", w.name, errChangeLost)
		case err != nil:
			return nil, err
		case change.At.Changes == 0:
			change.At.Changes = st.Changes + 1
		}
		change.At.Epoch = st.Epoch
		return notFollowed(ctx, o.Store, change, w.now())
	})
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, zkstore.ErrUnreachable) {
			err = fmt.Errorf("%s was changed, but whether all nodes have followed is not known: %w", w.name, err)
		}
		return err, nil
	}
	report.Wait = describeWait(behind)
	if len(behind) == 0 {
		report.Text += " All nodes have followed."
		return nil, nil
	}
	return nil, exitWith(exitNotFollowed, "%s was changed, but not all nodes have followed within %s. %s", w.name, w.time, behindText(behind, w.now()))
}

func describeWait(behind []coordinator.Behind) *waitReport {
	report := &waitReport{Followed: len(behind) == 0, Behind: []behindReport{}}
	for _, b := range behind {
		one := behindReport{Worker: b.Worker, Name: b.Slot.Name, Host: b.Slot.Host, Address: b.Slot.Address, Version: b.Slot.Version, Connected: b.Connected()}
		if !one.Connected {
			one.UntilMs = new(b.UntilMs)
		}
		report.Behind = append(report.Behind, one)
	}
	return report
}

// behindText names the workers that have not followed, and says what to do.
func behindText(behind []coordinator.Behind, now int64) string {
	var here, away, sentences []string
	latest := int64(0)
	for _, b := range behind {
		if b.Connected() {
			here = append(here, workerText(b.Entry))
		} else {
			away, latest = append(away, workerText(b.Entry)), max(latest, b.UntilMs)
		}
	}
	if len(here) > 0 {
		sentences = append(sentences, "Connected, but behind: "+listed(here)+". Look at the log there, or restart the node")
	}
	if len(away) > 0 {
		sentences = append(sentences, fmt.Sprintf("Not connected, so values by the old settings are possible until %s: %s. Connect or stop the node", clusterview.Instant(latest, time.UnixMilli(now)), listed(away)))
	}
	return joinSentences(sentences)
}

// workerText names a worker and what is known of its node.
func workerText(e coordinator.Entry) string {
	s := e.Slot
	var known []string
	if s.Name != "" {
		known = append(known, clusterview.Clean(s.Name))
	}
	if s.Host != "" && s.Host != s.Name {
		known = append(known, "host "+clusterview.Clean(s.Host))
	}
	if s.Address != "" {
		known = append(known, clusterview.Clean(s.Address))
	}
	if s.Version != "" {
		known = append(known, "version "+clusterview.Clean(s.Version))
	}
	text := fmt.Sprintf("worker %d", e.Worker)
	if len(known) > 0 {
		text += " (" + strings.Join(known, ", ") + ")"
	}
	return text
}
