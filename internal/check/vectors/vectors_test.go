// Package vectors tests flaked's layouts against IDs of other generators. vectors.jsonl holds IDs
// that bwmarrin/snowflake, sony/sonyflake and its v2 have made, with the fields that these
// libraries decode them to. Here they decode to the same fields, and encode to the same IDs.
package vectors

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/flaked/flaked/worker"
)

// vector is an ID and the fields that its library decodes it to.
type vector struct {
	By       string `json:"by"`
	Layout   string `json:"layout"`
	ID       int64  `json:"id"`
	TimeMs   int64  `json:"time_ms"`
	Worker   int64  `json:"worker"`
	Sequence int64  `json:"sequence"`
}

func parse(t *testing.T, data []byte) (all []vector) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var v vector
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
}

// check decodes each ID with flaked, and encodes the fields that the library gave for
// it. Both must agree with the vector. It returns the number of vectors of each
// library.
func check(t *testing.T, all []vector) map[string]int {
	t.Helper()
	of := map[string]int{}
	for _, v := range all {
		l, err := worker.ParseLayout(v.Layout)
		if err != nil {
			t.Fatal(err)
		}
		want := worker.Fields{Tick: l.FloorTick(v.TimeMs), Worker: v.Worker, Sequence: v.Sequence}
		if got, err := l.Decode(worker.ID(v.ID)); err != nil || got != want || l.Start(got.Tick) != v.TimeMs {
			t.Fatalf("%s: %d is %+v here, %v; want %+v", v.By, v.ID, got, err, want)
		}
		if id, err := l.Encode(want); err != nil || int64(id) != v.ID {
			t.Fatalf("%s: %+v is %d here, %v; want %d", v.By, want, id, err, v.ID)
		}
		of[v.By]++
	}
	return of
}

// atLeast is the least number of vectors of each library.
var atLeast = map[string]int{
	"bwmarrin": 100, "bwmarrin, 8 and 14 bits": 100,
	"sonyflake": 300, "sonyflake v2": 50, "sonyflake v2, own bits": 50,
}

func enough(t *testing.T, got map[string]int) {
	t.Helper()
	if len(got) != len(atLeast) {
		t.Errorf("libraries: %v", got)
	}
	for by, n := range atLeast {
		if got[by] < n {
			t.Errorf("%d IDs of %s, want %d", got[by], by, n)
		}
	}
}

func TestStoredIDsDecodeAlike(t *testing.T) {
	data, err := os.ReadFile("vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	enough(t, check(t, parse(t, data)))
}
