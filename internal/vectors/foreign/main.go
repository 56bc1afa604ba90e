// Command foreign makes and decodes IDs with the libraries of other generators, for the
// tests of internal/vectors.
//
//	foreign make          print the vectors of IDs, one a line, in JSON
//	foreign read <lines   print the vector for the library and ID of each line
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"
	sonyflakev2 "github.com/sony/sonyflake/v2"
)

// vector is an ID and the fields that its library decodes it to.
type vector struct {
	By       string `json:"by"`
	Layout   string `json:"layout"` // as flaked writes it
	ID       int64  `json:"id"`
	TimeMs   int64  `json:"time_ms"` // when its tick began
	Worker   int64  `json:"worker"`
	Sequence int64  `json:"sequence"`
}

// library is one configuration of a library.
type library struct {
	name, layout string
	// make calls yield with IDs. read decodes one, without by, layout and id.
	make func(yield func(int64)) error
	read func(id int64) (vector, error)
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "foreign:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 || args[0] != "make" && args[0] != "read" {
		return errors.New("usage: foreign make | read")
	}
	libraries := map[string]library{}
	enc := json.NewEncoder(out)
	for _, l := range all() {
		libraries[l.name] = l
		if args[0] == "read" {
			continue
		}
		var ids []int64
		if err := l.make(func(id int64) { ids = append(ids, id) }); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		for _, id := range ids {
			if err := write(enc, l, id); err != nil {
				return err
			}
		}
	}
	if args[0] == "make" {
		return nil
	}
	dec := json.NewDecoder(in)
	for {
		var asked vector
		if err := dec.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		l, ok := libraries[asked.By]
		if !ok {
			return fmt.Errorf("unknown library %q", asked.By)
		}
		if err := write(enc, l, asked.ID); err != nil {
			return err
		}
	}
}

func write(enc *json.Encoder, l library, id int64) error {
	v, err := l.read(id)
	if err != nil {
		return fmt.Errorf("%s: %d: %w", l.name, id, err)
	}
	v.By, v.Layout, v.ID = l.name, l.layout, id
	return enc.Encode(v)
}

// moments returns the times of composed IDs: the start, two ticks soon after it, and
// years later.
func moments(start time.Time) []time.Time {
	return []time.Time{start, start.Add(10 * time.Millisecond), start.Add(25 * time.Millisecond), start.AddDate(12, 2, 20).Add(12345678 * time.Millisecond)}
}

func all() []library {
	v1Start, v2Start := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	own := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	return []library{
		bwmarrin("bwmarrin", "leaf", 10, 12),
		bwmarrin("bwmarrin, 8 and 14 bits", "wide14", 8, 14),
		{
			name: "sonyflake", layout: "sonyflake",
			make: func(yield func(int64)) error {
				sf, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 65535, nil }})
				if err != nil {
					return err
				}
				for range 300 { // more than a tick has
					id, err := sf.NextID()
					if err != nil {
						return err
					}
					yield(int64(id))
				}
				for _, t := range moments(v1Start) {
					id, err := sonyflake.Compose(sf, t, 200, 12345)
					if err != nil {
						return err
					}
					yield(int64(id))
				}
				return nil
			},
			read: func(id int64) (vector, error) {
				u := uint64(id)
				return vector{
					TimeMs: v1Start.Add(sonyflake.ElapsedTime(u)).UnixMilli(),
					Worker: int64(sonyflake.MachineID(u)), Sequence: int64(sonyflake.SequenceNumber(u)),
				}, nil
			},
		},
		sonyV2("sonyflake v2", "sonyflake-v2", v2Start, sonyflakev2.Settings{}),
		sonyV2("sonyflake v2, own bits", "time=39@1ms,sequence=10,worker=14,epoch=2020-01-01", own,
			sonyflakev2.Settings{BitsSequence: 10, BitsMachineID: 14, TimeUnit: time.Millisecond, StartTime: own}),
	}
}

// bwmarrin returns a library for one width of its fields. The library keeps its widths
// in package variables, so make and read set them before each use.
func bwmarrin(name, layout string, node, step uint8) library {
	set := func(number int64) (*snowflake.Node, error) {
		snowflake.NodeBits, snowflake.StepBits = node, step
		return snowflake.NewNode(number)
	}
	return library{
		name: name, layout: layout,
		make: func(yield func(int64)) error {
			for _, number := range []int64{0, 7, 1<<node - 1} {
				n, err := set(number)
				if err != nil {
					return err
				}
				for range 50 {
					yield(n.Generate().Int64())
				}
			}
			return nil
		},
		read: func(id int64) (vector, error) {
			if _, err := set(0); err != nil {
				return vector{}, err
			}
			s := snowflake.ParseInt64(id)
			return vector{TimeMs: s.Time(), Worker: s.Node(), Sequence: s.Step()}, nil
		},
	}
}

func sonyV2(name, layout string, start time.Time, settings sonyflakev2.Settings) library {
	machine := 1<<14 - 1
	settings.MachineID = func() (int, error) { return machine, nil }
	return library{
		name: name, layout: layout,
		make: func(yield func(int64)) error {
			sf, err := sonyflakev2.New(settings)
			if err != nil {
				return err
			}
			for range 50 {
				id, err := sf.NextID()
				if err != nil {
					return err
				}
				yield(id)
			}
			for _, t := range moments(start) {
				id, err := sf.Compose(t, 200, 12345)
				if err != nil {
					return err
				}
				yield(id)
			}
			return nil
		},
		read: func(id int64) (vector, error) {
			sf, err := sonyflakev2.New(settings)
			if err != nil {
				return vector{}, err
			}
			parts := sf.Decompose(id)
			return vector{TimeMs: sf.ToTime(id).UnixMilli(), Worker: parts["machine"], Sequence: parts["sequence"]}, nil
		},
	}
}
