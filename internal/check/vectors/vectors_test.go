// Package vectors tests flaked's layouts against IDs of other generators. vectors.jsonl holds IDs
// that bwmarrin/snowflake, sony/sonyflake and its v2 have made, with the fields that these
// libraries decode them to. Here they decode to the same fields, and encode to the same IDs.
package vectors

import (
	"bytes"
	"encoding/json"
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

// atLeast is the least number of vectors of each library.
var atLeast = map[string]int{
	"bwmarrin": 100, "bwmarrin, 8 and 14 bits": 100,
	"sonyflake": 300, "sonyflake v2": 50, "sonyflake v2, own bits": 50,
}

// Each ID has the fields that the library gave for it, and these fields make the same ID.
func TestStoredIDsDecodeAlike(t *testing.T) {
	data, err := os.ReadFile("vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var v vector
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
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
		got[v.By]++
	}
	if len(got) != len(atLeast) {
		t.Errorf("libraries: %v", got)
	}
	for by, n := range atLeast {
		if got[by] < n {
			t.Errorf("%d IDs of %s, want %d", got[by], by, n)
		}
	}
}
