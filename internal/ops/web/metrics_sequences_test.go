package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/sequence"
)

func TestMetricsOfSequences(t *testing.T) {
	addr, _ := start(t, Config{Sequences: func() seq.Report {
		r := seq.Report{State: seq.State{Incarnation: 1}, ReadAgo: time.Second, Issued: 7, Blocks: 3, Waits: 2,
			Refused: map[seq.Reason]int64{seq.CeilingReached: 4}}
		for k := range maxSequences + 20 {
			r.Sequences = append(r.Sequences, seq.Use{
				Name: fmt.Sprintf("s%d", k), Held: 10, PerSecond: 1.5,
				Record: seq.Record{Map: sequence.Map{Start: 1, Increment: 1, Max: 1000}, Next: int64(k),
					Incarnation: 1},
			})
		}
		r.Sequences[0].Record.Next = 1000
		return r
	}})
	body := scrape(t, addr)
	for _, line := range []string{
		`flaked_named_sequences{state="in-use"} 119`, `flaked_named_sequences{state="exhausted"} 1`,
		`flaked_named_sequences{state="frozen"} 0`,
		`flaked_named_sequences_read_age_seconds 1`, `flaked_named_sequence_values_total 7`,
		`flaked_named_sequence_blocks_total 3`,
		`flaked_named_sequence_waits_total 2`, `flaked_named_sequence_refusals_total{reason="ceiling"} 4`,
		`flaked_named_sequence_used_ratio{sequence="s0"} 1`,
		`flaked_named_sequence_held_values{sequence="s119"} 10`,
		`flaked_named_sequence_values_per_second{sequence="s119"} 1.5`,
	} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if n := strings.Count(body, "\nflaked_named_sequence_used_ratio{"); n != maxSequences {
		t.Errorf("%d sequences have metrics of their own, want %d", n, maxSequences)
	}
}
