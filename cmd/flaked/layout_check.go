package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/worker"
)

func layoutCheckCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "check a layout, and what a change to it would do",
		ArgsUsage: "LAYOUT",
		Description: `Checks whether LAYOUT can make IDs today, and for how long. With the layout in use
(--from, or that of the cluster at --zk or FLAKED_ZK), it also checks what a change
would do: whether new IDs are above all old ones, at once or from which date on, and
whether they can equal old ones. --since is the date of the first old ID, if that is
later than the epoch of the old layout: IDs below that date were never made.

The layout of a cluster never changes. To use another one, create another cluster with
its own state directories, and send clients there when the old nodes have stopped.

Exits with 1 if the layout cannot be used, and with 4 after warnings, as when IDs can
repeat or are not in order.

Examples:
  flaked layout check js53
  flaked layout check wide14 --from leaf
  flaked layout check sonyflake-v2 --zk zk1:2181 --since 2024-03-01`,
		Flags: append([]cli.Flag{outputFlag(),
			&cli.StringFlag{Name: "from", Usage: "the `LAYOUT` in use", DefaultText: "the cluster's", EnvVars: env("from")},
			&cli.StringFlag{Name: "since", Usage: "the `DATE` of the first ID made with it", DefaultText: "its epoch", EnvVars: env("since")},
		}, zkFlags("")...),
		Action: layoutCheck,
	}
}

// How new IDs compare with old IDs, from now on.
const (
	standAbove  = "above"  // all old IDs
	standWithin = "within" // they can equal old IDs
	standBelow  = "below"  // at first
)

// changeReport describes a change from one layout to another.
type changeReport struct {
	From string `json:"from"`
	// Stand is above, within or below.
	Stand string `json:"stand"`
	// WithinMs is the time from which a new ID can equal an old one. AboveMs is the time from
	// which every new ID is above all old ones. Both are now or later, and 0 means never.
	WithinMs int64 `json:"within_ms"`
	AboveMs  int64 `json:"above_ms"`
	// If Stand is within, SameMs is the time at which the old layout made the numbers
	// that new IDs begin with.
	SameMs int64 `json:"same_ms"`
	// EpochMs is the latest epoch with which new IDs would be above all old ones at once. It is
	// a midnight UTC, or -1 if there is none.
	EpochMs int64    `json:"epoch_ms"`
	Before  capacity `json:"before"`
}

// checkReport is the JSON of `layout check`.
type checkReport struct {
	layoutReport
	Change *changeReport `json:"change,omitempty"`
	// Warnings say what to know before the layout is used.
	Warnings []string `json:"warnings"`
}

// changeOf compares the numbers that old has made between since and now with those that
// next makes from now on.
func changeOf(old, next worker.Layout, since, now time.Time) changeReport {
	r := changeReport{From: old.String(), Before: capacityOf(old)}
	nowMs := now.UnixMilli()
	oldShift, newShift := old.Parts()[0].Shift, next.Parts()[0].Shift
	// Old IDs are from low to high. The whole tick of now counts as used.
	tickOf := func(t time.Time) int64 {
		return int64(min(max(0, old.FloorTick(t.UnixMilli())), old.MaxTick()))
	}
	low, high := tickOf(since)<<oldShift, (tickOf(now)+1)<<oldShift-1
	// at returns the time from which all IDs of next are number or higher, 0 for never.
	at := func(number int64) (ms int64) {
		tick := number >> newShift
		if tick<<newShift < number {
			tick++
		}
		start, ok := startOf(next, tick)
		if !ok {
			return 0
		}
		return max(nowMs, start)
	}
	r.EpochMs = epochAbove(next, high, nowMs)
	first := int64(max(0, next.FloorTick(nowMs))) << newShift
	r.AboveMs = at(high + 1)
	switch {
	case first > high:
		r.Stand, r.AboveMs = standAbove, nowMs
	case first+1<<newShift > low:
		r.Stand, r.WithinMs = standWithin, nowMs
		r.SameMs = old.Start(worker.Tick(max(first, low) >> oldShift))
		// Only the current tick overlaps, as with equal time bits. No ID of the next tick exists.
		if tick := max(old.Unit, next.Unit); r.AboveMs > 0 && r.AboveMs-nowMs <= tick.Milliseconds() {
			r.Stand, r.WithinMs, r.SameMs = standAbove, 0, 0
		}
	default:
		r.Stand, r.WithinMs = standBelow, at(low)
	}
	return r
}

// epochAbove returns the latest midnight UTC which as epoch would put new IDs above number. It
// returns -1 if there is none, or if the layout would then last for less than a year.
func epochAbove(l worker.Layout, number, nowMs int64) int64 {
	const dayMs = 24 * 60 * 60 * 1000
	ticks := number>>l.Parts()[0].Shift + 1
	if ticks > int64(l.MaxTick()) || ticks > nowMs/l.Unit.Milliseconds() {
		return -1
	}
	l.Epoch = (nowMs - ticks*l.Unit.Milliseconds()) / dayMs * dayMs
	if l.Expires().UnixMilli() < nowMs+365*dayMs {
		return -1
	}
	return l.Epoch
}

func checkOf(l worker.Layout, old *worker.Layout, since, now time.Time) checkReport {
	r := checkReport{layoutReport: describeLayout(l, now), Warnings: []string{}}
	warn := func(format string, a ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, a...)) }
	if r.Unusable != "" {
		warn("it cannot make IDs: %s", r.Unusable)
	} else if end := l.Expires(); end.Sub(now) < 5*365*24*time.Hour {
		warn("its time field is used up on %s, in %s", end.Format(time.DateOnly), years(end.Sub(now)))
	}
	if l.Unit > time.Second {
		warn("with a tick of %s, nodes need --reserve %s or more, but --reserve must be below 10s. The longest tick that nodes can serve is 3s", l.Unit, 3*l.Unit)
	}
	if old == nil {
		return r
	}
	c := changeOf(*old, l, since, now)
	r.Change = &c
	if r.Unusable != "" {
		return r
	}
	until := "for as long as it lasts"
	if c.AboveMs > 0 {
		until = "until " + day(c.AboveMs)
	}
	switch c.Stand {
	case standWithin:
		warn("IDs can repeat: %s, new IDs can equal IDs that the old layout has made since %s", until, day(c.SameMs))
	case standBelow:
		warn("IDs are not in order: at first, new IDs are below the old ones")
		if c.WithinMs > 0 {
			warn("IDs can repeat: from %s on, %s, new IDs can equal IDs of the old layout", day(c.WithinMs), until)
		}
	}
	if c.Stand != standAbove {
		if c.EpochMs >= 0 {
			above := l
			above.Epoch = c.EpochMs
			warn("with epoch=%s, new IDs would be above all old ones at once, and last until %s", day(c.EpochMs), day(above.Expires().UnixMilli()))
		} else {
			warn("no epoch puts new IDs above all old ones: the time field has too few bits, or too many bits are below it")
		}
	}
	if old.DatacenterBits != l.DatacenterBits {
		warn("the datacenter field has %d bits instead of %d. Give --datacenter again", l.DatacenterBits, old.DatacenterBits)
	}
	return r
}

func layoutCheck(c *cli.Context) error {
	if c.NArg() != 1 {
		return usageError("expected one layout, got %d arguments. Give a name or fields without blanks, as leaf,epoch=2026-01-01", c.NArg())
	}
	l, err := layoutOf("layout", c.Args().First())
	if err != nil {
		return err
	}
	old, err := layoutInUse(c)
	if err != nil {
		return err
	}
	now := time.Now()
	var since time.Time
	if old != nil {
		since = old.Time(worker.Fields{})
	}
	if text := c.String("since"); text != "" {
		if old == nil {
			return usageError("--since needs the layout in use. Give --from LAYOUT or --zk")
		}
		if since, err = parseMoment(text); err != nil {
			return usageError("--since: %w", err)
		}
	}
	r := checkOf(l, old, since, now)
	switch err := show(c, r, func(w io.Writer) error { return showCheck(w, l, r, now) }); {
	case err != nil:
		return err
	case r.Unusable != "":
		return exitWith(exitFailure, "this layout cannot be used: %s", r.Unusable)
	case len(r.Warnings) > 0:
		return exitWith(exitDegraded, "this layout works, with %s", warnings(len(r.Warnings)))
	}
	return nil
}

func warnings(n int) string {
	if n == 1 {
		return "a warning"
	}
	return fmt.Sprintf("%d warnings", n)
}

// layoutInUse returns the layout to change from, nil if no flag names one.
func layoutInUse(c *cli.Context) (*worker.Layout, error) {
	if text := c.String("from"); text != "" {
		l, err := layoutOf("--from", text)
		return &l, err
	}
	if c.String("zk") == "" {
		return nil, nil
	}
	found, err := zooKeeperLayout(c, true)
	return &found.layout, err
}

func showCheck(w io.Writer, l worker.Layout, r checkReport, now time.Time) error {
	fmt.Fprintln(w, layoutName(l))
	if c := r.Change; c != nil {
		fmt.Fprintf(w, "instead of %s\n\n", c.From)
		t := textTable{right: map[int]bool{1: true, 2: true}}
		t.add("", "BEFORE", "AFTER")
		t.add("IDs a second, a worker", perSecond(c.Before.IDsPerSecond), perSecond(r.IDsPerSecond))
		t.add("workers", grouped(int64(c.Before.Workers)), grouped(int64(r.Workers)))
		t.add("IDs end", day(c.Before.EndsMs), day(r.EndsMs))
		if err := t.print(w, false); err != nil {
			return err
		}
		stands := "above all old ones"
		switch {
		case c.Stand == standAbove:
		case c.AboveMs > 0:
			stands = fmt.Sprintf("%s the old ones, and above all of them from %s on", c.Stand, day(c.AboveMs))
		default:
			stands = fmt.Sprintf("%s the old ones, and never above all of them", c.Stand)
		}
		if r.Unusable == "" {
			fmt.Fprintf(w, "\nnew IDs are %s\n", stands)
		}
	} else {
		fmt.Fprintln(w)
		if err := printFields(w, layoutRows(l, r.layoutReport, now)); err != nil {
			return err
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, "warning: "+warning)
	}
	return nil
}

// parseMoment parses a year, a date, or a date and time with a zone. Without a zone, UTC is meant.
func parseMoment(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339, time.DateOnly, "2006"} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time. Give one such as 2060, 2026-01-31 or 2026-01-31T12:00:00Z", text)
}
