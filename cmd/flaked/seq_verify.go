package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
)

func seqVerify(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "tell the values of a sequence from other numbers",
		UsageText: "flaked seq verify --zk HOST:PORT NAME VALUE... [flags]",
		ArgsUsage: "NAME VALUE...",
		Description: `Prints for each number whether it is a value of the sequence, at which position, and
whether nodes have taken that position. A value that they have taken may have been
issued, or may be still in a node's stock, or was skipped. The exit code is 1 if a number
is not a value that nodes have taken.

Of a salted sequence, one other number in 2^salt is a value by chance. Of a scattered one,
each number from start on is a value, so that only the position tells.
A program that has the key needs no lookup: see ` + "`flaked seq key`" + `.

In the JSON, values and positions are strings, and position is null for other numbers.

Examples:
  flaked seq verify --zk zk1:2181 ticket 4711042
  flaked seq verify ticket 4711042 4711043 -o json | jq '.values[] | select(.taken | not)'`,
		Flags: append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
		Action: func(c *cli.Context) error {
			name, numbers, err := verifyArguments(c)
			if err != nil {
				return err
			}
			return open.withKey(c, name, func(r seqstore.Record, k sequence.Key) error {
				report := verify(name, r, k, numbers)
				err := show(c, report, report.print)
				return cmp.Or(err, report.refused())
			})
		},
	}
}

// verifyArguments returns the arguments of `flaked seq verify`.
func verifyArguments(c *cli.Context) (name string, numbers []int64, err error) {
	if c.NArg() < 2 {
		return "", nil, usageError("expected a sequence and one number or more, as in `%s ticket 4711042`", c.Command.HelpName)
	}
	name = c.Args().First()
	if sequence.IsTemplate(name) {
		return "", nil, usageError("%s is a template and has no values. Name a sequence that it has created", name)
	}
	if err := sequence.CheckName(name); err != nil {
		return "", nil, usageError("%w", err)
	}
	for _, text := range c.Args().Tail() {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", nil, usageError("%.40q is not a number of 64 bits", text)
		}
		numbers = append(numbers, n)
	}
	return name, numbers, nil
}

// withKey calls f with the record of a sequence and its key.
func (open storeOpener) withKey(c *cli.Context, name string, f func(seqstore.Record, sequence.Key) error) error {
	return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error {
		r, _, err := o.Show(ctx, name)
		if err != nil {
			return ofSequence(name, err)
		}
		k, err := o.Key(ctx, r)
		if err != nil {
			return ofSequence(name, err)
		}
		return f(r, k)
	})
}

// verifyReport is the JSON of `flaked seq verify`.
type verifyReport struct {
	Name         string          `json:"name"`
	Map          string          `json:"map"`
	NextPosition int64           `json:"next_position,string"`
	Values       []verifiedValue `json:"values"`
}

type verifiedValue struct {
	Value int64 `json:"value,string"`
	// Ours: the number is a value of the sequence.
	Ours bool `json:"ours"`
	// Position is null for other numbers.
	Position *int64 `json:"position,string"`
	// Taken: nodes have taken the position.
	Taken bool `json:"taken"`
}

func verify(name string, r seqstore.Record, k sequence.Key, numbers []int64) verifyReport {
	values := sequence.NewValues(r.Map, k)
	report := verifyReport{Name: name, Map: r.Kind(), NextPosition: r.Next}
	for _, n := range numbers {
		v := verifiedValue{Value: n}
		if p, ours := values.Position(n); ours {
			v.Ours, v.Position, v.Taken = true, &p, p < r.Next
		}
		report.Values = append(report.Values, v)
	}
	return report
}

func (r verifyReport) print(w io.Writer) error {
	t := textTable{right: map[int]bool{0: true, 1: true}}
	t.add("VALUE", "POSITION", "VERDICT")
	for _, v := range r.Values {
		position, verdict := "-", "not a value of "+r.Name
		if v.Ours {
			position, verdict = strconv.FormatInt(*v.Position, 10), "not taken yet"
		}
		if v.Taken {
			verdict = "taken"
		}
		t.add(strconv.FormatInt(v.Value, 10), position, verdict)
	}
	return t.print(w, false)
}

// refused returns the error for numbers that are not values which nodes have taken.
func (r verifyReport) refused() error {
	bad := 0
	for _, v := range r.Values {
		if !v.Taken {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return exitWith(exitFailure, "%d of %s: not a value of %s that nodes have taken", bad, count(int64(len(r.Values)), "number"), r.Name)
}

func seqKey(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "key",
		Usage:     "print the key of a salted or scattered sequence",
		UsageText: "flaked seq key --zk HOST:PORT NAME [flags]",
		ArgsUsage: "NAME",
		Description: `Prints the key as 32 hexadecimal digits. A program that has it, with the start, the max,
the salt or the scatter, turns values into positions without a lookup: in Go with
sequence.NewValues, in other languages by docs/sequences.md.

The key is a secret: a program that has it can predict all values, and make ones that
pass. Give it only to programs that must verify values, and never to clients. It never
changes. To have another one, delete the sequence and create it again.

Examples:
  flaked seq key --zk zk1:2181 ticket > ticket.key
  flaked seq key ticket -o json`,
		Flags: append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
		Action: func(c *cli.Context) error {
			name, err := sequenceArgument(c)
			if err != nil {
				return err
			}
			if sequence.IsTemplate(name) {
				return usageError("%s is a template and has no key. Each sequence that it creates has its own", name)
			}
			return open.withKey(c, name, func(r seqstore.Record, k sequence.Key) error {
				if !r.Keyed() {
					return exitWith(exitFailure, "%s is neither salted nor scattered, so it has no key", name)
				}
				doc := keyReport{name, r.ID, r.Start, r.Max, r.Salt, r.Scatter, k.Hex()}
				return show(c, doc, func(w io.Writer) error {
					_, err := fmt.Fprintln(w, k.Hex())
					return err
				})
			})
		},
	}
}

// keyReport is the JSON of `flaked seq key`.
type keyReport struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Start   int64  `json:"start,string"`
	Max     int64  `json:"max,string"`
	Salt    int    `json:"salt"`
	Scatter int    `json:"scatter"`
	Key     string `json:"key"`
}
