package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/seqimport"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
)

func seqImport(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "create sequences that go on where other counters end",
		UsageText: "flaked seq import --zk HOST:PORT --from SOURCE [flags] < ROWS",
		Description: `Reads the counters of another generator on standard input, and creates a sequence for each.
A row is a line, with its columns separated by tabs, | or commas. If the first line has
names of columns, they may be in any order, and others are left out. Else they must be

  leaf      biz_tag, max_id, and step if you like: the table leaf_alloc
  tinyid    biz_type, max_id, step, delta, remainder: the table tiny_id_info
  mysql     name, auto_increment, max_id, and if they are not 1
            auto_increment_increment, auto_increment_offset
  postgres  name, last_value, is_called, increment
  redis     name, value: the key, and what GET says of it

docs/migration-sequences.md has the query for each. All rows are checked first: if one
cannot be imported, the command names its line, and nothing is changed. Sequences that
exist are not changed, so a command that was interrupted can be run again.

The sequences are held: nodes refuse to issue their values, so the old generator can go
on. Then stop it everywhere, read the rows once more, and let the command compare them:

  --verify          the first number that the source has not issued must not be above the
                    next value of the sequence. Nothing is changed
  --verify --raise  raises the next values that are too low, with the margin
  --verify --start  starts the sequences if all rows are verified, and else none

The margin covers what the old generator issues in between. 10% is a tenth of the numbers
that it has used, but at least ten of its steps. A step is what Leaf or tinyid reserve at
once, for the others one number. --margin 5000 is 5,000 numbers.

The exit code is 1 if a verification fails, and 4 if sequences exist that were not
imported from this source.

` + waitText + `

Examples:
  flaked seq import --zk zk1:2181 --from leaf --dry-run < rows
  flaked seq import --from mysql --max int32 --rename orders=order < rows
  flaked seq import --from redis --prefix shop: --verify --start < rows
  flaked seq import --from postgres --verify --raise --margin 1000 < rows`,
		Flags: append(append([]cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "the `SOURCE` of the rows: " + strings.Join(seqimport.Sources(), ", "), Category: callFlags},
			&cli.BoolFlag{Name: "verify", Usage: "compare the rows with the sequences that were imported", DisableDefaultText: true, Category: callFlags},
			&cli.BoolFlag{Name: "raise", Usage: "with --verify: raise next values that the source has passed", DisableDefaultText: true, Category: callFlags},
			&cli.BoolFlag{Name: "start", Usage: "with --verify: start the sequences if all rows are verified", DisableDefaultText: true, Category: callFlags},
			&cli.StringFlag{Name: "margin", Usage: "leave out this many numbers, or this part (`N` or N%)", Value: "10%", Category: callFlags},
			&cli.StringFlag{Name: "prefix", Usage: "put `TEXT` before each name", DefaultText: "none", Category: callFlags},
			&cli.StringSliceFlag{Name: "rename", Usage: "call a sequence otherwise: `OLD=NEW`, without the prefix. May be repeated", Category: callFlags},
			maxFlag("js", ". js is 2^53-1, which JavaScript holds exactly"),
			hardCeilingFlag(),
		}, settingFlags(true)...), append([]cli.Flag{waitFlag(), dryRunFlag(), outputFlag()}, zkFlags(localZK)...)...),
		Action: func(c *cli.Context) error {
			im, err := importGiven(c)
			if err != nil {
				return err
			}
			return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error {
				if im.o = o; im.dry {
					im.o = withoutWrites(o)
				}
				return im.run(ctx)
			})
		},
	}
}

// importer is one run of `flaked seq import`.
type importer struct {
	c          *cli.Context
	o          seqstore.Operator
	from       string
	counters   []seqimport.Counter
	margin     seqimport.Margin
	definition seqstore.Definition // without a name and a map
	limit      time.Duration       // of --wait
	dry        bool
	report     importReport
	last       changed
}

// changed is the last record that was written.
type changed struct {
	name   string
	record seqstore.Record
}

// importReport is the JSON of `flaked seq import`.
type importReport struct {
	From string `json:"from"`
	// Changed is true if this call has changed any sequence.
	Changed bool        `json:"changed"`
	DryRun  bool        `json:"dry_run"`
	Rows    []importRow `json:"rows"`
	Wait    *waitReport `json:"wait"`
	Text    string      `json:"text"`
}

// importRow is what became of a row.
type importRow struct {
	Line int    `json:"line"`
	Name string `json:"name"`
	// SourceNext is the first number that the source has not issued. Next is the next value of the
	// sequence, null if there is none.
	SourceNext int64  `json:"source_next,string"`
	Next       *int64 `json:"next,string"`
	Outcome    string `json:"outcome"`
}

// The outcomes of a row.
const (
	rowCreated  = "created"
	rowImported = "imported before"
	rowExists   = "exists"
	rowVerified = "verified"
	rowRaised   = "raised"
	rowStarted  = "started"
	rowRunning  = "started before"
	rowBehind   = "behind the source"
	rowDiffers  = "other increment or offset"
	rowMissing  = "not imported"
)

// importGiven reads the command line and the rows.
func importGiven(c *cli.Context) (*importer, error) {
	im := &importer{c: c, from: c.String("from"), dry: c.Bool("dry-run")}
	var err error
	switch {
	case c.NArg() > 0:
		return nil, usageError("expected no arguments, got %q. The rows are read on standard input", c.Args().First())
	case im.from == "":
		return nil, usageError("--from is needed. It is one of %s", strings.Join(seqimport.Sources(), ", "))
	case !c.Bool("verify") && (c.Bool("start") || c.Bool("raise")):
		return nil, usageError("--start and --raise need --verify")
	}
	if im.margin, err = seqimport.ParseMargin(c.String("margin")); err != nil {
		return nil, usageError("--margin %s: %w", c.String("margin"), err)
	}
	if im.limit, err = waitGiven(c); err != nil {
		return nil, err
	}
	if err := limitsGiven(c, &im.definition); err != nil {
		return nil, err
	}
	if err := im.definition.Settings.Check(); err != nil {
		return nil, usageError("--%w", err)
	}
	names, err := namesGiven(c)
	if err != nil {
		return nil, err
	}
	if isTerminal(c.App.Reader) {
		fmt.Fprintln(c.App.ErrWriter, "reading rows from the terminal. Ctrl-D ends the input.")
	}
	im.counters, err = seqimport.Read(im.from, c.App.Reader, names.of)
	if bad := (seqimport.BadRows{}); errors.As(err, &bad) {
		return nil, exitWith(exitFailure, "rows cannot be imported, and nothing was changed: %w", err)
	}
	if err != nil {
		return nil, usageError("--from %s: %w", im.from, err)
	}
	for old, used := range names.used {
		if !used {
			return nil, usageError("--rename %s=%s: no row has this name. Nothing was changed", old, names.renamed[old])
		}
	}
	im.report = importReport{From: im.from, DryRun: im.dry}
	return im, nil
}

// importNames gives counters the names of their sequences.
type importNames struct {
	prefix  string
	renamed map[string]string
	used    map[string]bool
}

func namesGiven(c *cli.Context) (importNames, error) {
	prefix, err := prefixGiven(c)
	n := importNames{prefix, map[string]string{}, map[string]bool{}}
	for _, text := range c.StringSlice("rename") {
		old, name, ok := strings.Cut(text, "=")
		if !ok || old == "" {
			return n, usageError("--rename must be OLD=NEW, not %q", text)
		}
		n.renamed[old], n.used[old] = name, false
	}
	return n, err
}

// of returns the name of a counter's sequence.
func (n importNames) of(counter string) (string, error) {
	name, ok := n.renamed[counter]
	if ok {
		n.used[counter] = true
	} else {
		name = n.prefix + counter
	}
	if err := sequence.CheckName(name); err != nil {
		return "", fmt.Errorf("%w. Give another name with --rename '%s=NAME', or --prefix", err, counter)
	}
	return name, nil
}

func (im *importer) run(ctx context.Context) error {
	var late error
	var err error
	if im.c.Bool("verify") {
		late, err = im.verify(ctx)
	} else {
		late, err = im.create(ctx)
	}
	if err != nil {
		return err
	}
	unfollowed, err := im.wait(ctx)
	if err != nil {
		return err
	}
	err = show(im.c, im.report, im.print)
	return cmp.Or(err, late, unfollowed)
}

// wait waits for the last change, which comes after all others.
func (im *importer) wait(ctx context.Context) (late, err error) {
	if !im.report.Changed {
		return nil, nil
	}
	w := changeWaiter{im.c, im.o.Now, im.last.name, im.limit}
	change := seqChange{Changed: true, Text: im.report.Text}
	err, late = w.followed(ctx, im.o, im.last.record, &change)
	im.report.Wait, im.report.Text = change.Wait, change.Text
	return late, err
}

// operator returns the commands for a sequence. They wait as the other commands do.
func (im *importer) operator(name string) seqstore.Operator {
	return changeWaiter{im.c, im.o.Now, name, im.limit}.waiting(im.o)
}

func (im *importer) print(w io.Writer) error {
	t := textTable{right: map[int]bool{0: true, 2: true, 3: true}}
	t.add("LINE", "NAME", "SOURCE", "NEXT", "OUTCOME")
	for _, r := range im.report.Rows {
		next := "-"
		if r.Next != nil {
			next = strconv.FormatInt(*r.Next, 10)
		}
		t.add(strconv.Itoa(r.Line), r.Name, strconv.FormatInt(r.SourceNext, 10), next, r.Outcome)
	}
	if err := t.print(w, false); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, im.report.Text)
	return err
}

// add reports what became of a row. r is nil if there is no sequence.
func (im *importer) add(n seqimport.Counter, r *seqstore.Record, outcome string) {
	row := importRow{Line: n.Line, Name: n.Name, SourceNext: n.First, Outcome: outcome}
	if r != nil && r.Next < r.Positions() {
		row.Next = new(r.Value(r.Next))
	}
	im.report.Rows = append(im.report.Rows, row)
}

// wrote notes that a record was written.
func (im *importer) wrote(name string, r seqstore.Record) {
	im.report.Changed = !im.dry
	im.last = changed{name, r}
}

// find returns the record of a sequence, nil if there is none.
func (im *importer) find(ctx context.Context, name string) (*seqstore.Record, error) {
	r, _, err := im.o.Show(ctx, name)
	switch {
	case errors.Is(err, seqstore.ErrNotFound), err == nil && r.DeletedAt != 0:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &r, nil
}

// hold returns the hold of new sequences.
func (im *importer) hold(ctx context.Context) (int64, error) {
	if im.c.IsSet("hold") {
		return im.definition.HoldMs, nil
	}
	cl, err := coordinator.ReadCluster(ctx, im.o.Store)
	return cl.LeaseMs, err
}

// counts returns how many rows have each outcome, in words.
func (im *importer) counts() string {
	var order, parts []string
	n := map[string]int{}
	for _, r := range im.report.Rows {
		if n[r.Outcome] == 0 {
			order = append(order, r.Outcome)
		}
		n[r.Outcome]++
	}
	for _, outcome := range order {
		parts = append(parts, fmt.Sprintf("%d %s", n[outcome], outcome))
	}
	return strings.Join(parts, ", ")
}
