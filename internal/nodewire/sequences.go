package nodewire

import (
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/seqstore"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Sequences implements lineproto.Sequences. It writes the text of refusals.
type Sequences struct{ *seqstore.Issuer }

// Take is part of lineproto.Sequences.
func (s Sequences) Take(w *sequence.Wait, name []byte, n int, whole bool, wake func(), to []worker.Run) ([]worker.Run, error) {
	to, err := s.Issuer.Take(w, name, n, whole, wake, to)
	return to, wordSequence(err)
}

// Show is part of lineproto.Sequences.
func (s Sequences) Show(w *sequence.Wait, name []byte, wake func()) (string, error) {
	line, err := s.Issuer.Show(w, name, wake)
	return line, wordSequence(err)
}

// sequenceCodes are the error codes of the reasons for which a node gives no value.
var sequenceCodes = map[seqstore.Reason]lineproto.Code{
	seqstore.NoSequence: lineproto.ERR, seqstore.TooMany: lineproto.ERR, seqstore.Frozen: lineproto.ERR,
	seqstore.NoBlock: lineproto.NOTREADY, seqstore.CeilingReached: lineproto.NOTREADY, seqstore.Confirming: lineproto.NOTREADY,
	seqstore.TooManyNames: lineproto.NOTREADY, seqstore.Unknown: lineproto.NOTREADY,

	seqstore.Exhausted: lineproto.EXHAUSTED,
}

// wordSequence returns the error that the client gets for a refusal. It returns other errors as they
// are.
func wordSequence(err error) error {
	var r *seqstore.Refusal
	if !errors.As(err, &r) {
		return err
	}
	text := "reason=" + string(r.Reason)
	if r.RetryAfter > 0 {
		text += fmt.Sprintf(" retry_after_ms=%d", max(1, r.RetryAfter.Milliseconds()))
	}
	return &lineproto.Error{Code: sequenceCodes[r.Reason], Text: text + " " + r.Text}
}
