package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

func TestSeqTranscript(t *testing.T) {
	w := newSeqWorld(t)
	names := map[string]string{}
	for name, taken := range map[string]string{"KNOWS": "start=1 increment=1 max=9007199254740991 taken=1234",
		"OTHER": "start=7 increment=1 max=9007199254740991 taken=999999"} {
		names[name] = told{taken: "name=invoice mode=strict " + taken + " unanswered=0"}.serve(t)
	}
	names["NONE"] = told{taken: "-ERR reason=no-sequence there is no such sequence"}.serve(t)
	transcript(t, "seq.txt", names, func(event string) { w = w.happens(strings.Fields(event)) })
}

// happens makes an event happen, and returns the world in which the transcript goes on.
func (w *seqWorld) happens(event []string) *seqWorld {
	w.t.Helper()
	remove := func(path string) {
		if err := w.store.Delete(w.t.Context(), path, store.AnyVersion); err != nil {
			w.t.Fatal(err)
		}
	}
	switch strings.Join(event[:min(2, len(event))], " ") {
	case "another cluster":
		return newSeqWorld(w.t)
	case "a connected": // node is behind
		w.behind()
	case "a node": // is not connected
		w.absent()
	case "ZooKeeper loses": // data
		w.losesData()
	case "no node": // has served sequences
		remove("/seq")
	case "no cluster":
		remove("/cluster")
	case "node owns": // NAME below VALUE
		w.owns(event[2], event[4])
	default: // nodes take NAME below VALUE
		next, err := strconv.ParseInt(event[4], 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		w.taken(event[2], next)
	}
	return w
}

// owns makes an ordered sequence, or a section, look as if a node owned it and had taken all values below next.
func (w *seqWorld) owns(name, next string) {
	w.t.Helper()
	path := fmt.Sprintf("/seq/s/%03x/%s", positions.Bucket(name), name)
	data, _, err := w.store.Get(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	var r record.Record
	if err := json.Unmarshal(data, &r); err != nil {
		w.t.Fatal(err)
	}
	v, err := strconv.ParseInt(next, 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Owner, r.Address, r.Term, r.WrittenBy = "n1", "10.0.0.1:7609", r.Term+1, "ids-1"
	r.OwnedAt, r.Next = time.Now().Add(-2*time.Hour).UnixMilli(), r.PositionAtOrAbove(v)
	put(w.t, w.store, path, r, false)
}
