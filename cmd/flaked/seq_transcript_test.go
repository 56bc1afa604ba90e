package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

func TestSeqTranscript(t *testing.T) {
	w := newSeqWorld(t)
	transcript(t, "seq.txt", func(args []string) result { return w.call(args[1:]...) },
		func(event []string) { w = w.happens(event) })
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
	case "ZooKeeper loses": // data
		w.losesData()
	case "no node": // has served sequences
		remove("/seq")
	case "no cluster":
		remove("/cluster")
	default: // nodes take NAME below VALUE
		next, err := strconv.ParseInt(event[4], 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		w.taken(event[2], next)
	}
	return w
}
