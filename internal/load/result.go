package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a run has measured.
type Result struct {
	// Elapsed is how long it was measured: Duration, or less where it was
	// interrupted.
	Elapsed     time.Duration
	Interrupted bool
	// Requests, and the IDs in them, were answered well while it was measured.
	Requests, IDs int64
	// Latency holds ns, of all requests that were due while it was measured. Those
	// that were never answered are in it with the time that was waited for them.
	Latency *hdrhistogram.Histogram
	// Errors by code: those of replies in capitals, our own in small letters. From
	// the first connection on.
	Errors map[string]int64
	// Unanswered is how many requests were due before the end and not answered
	// within the timeout after it.
	Unanswered int64
	// Check is what came of looking at IDs, of the whole run. nil: not looked at.
	Check *CheckResult
	// ClientCPU is the processor time of this process while it was measured.
	ClientCPU time.Duration
	// Server is what was read of Config.PID. nil: nothing.
	Server *ServerUse
}

// ServerUse is what a server took of its machine while it was measured.
type ServerUse struct {
	CPU      time.Duration
	Resident int64 // bytes, at the end
}

// Codes of errors that are not replies.
const (
	codeClosed   = "closed"   // the server closed the connection
	codeBroken   = "broken"   // the connection broke: reset, and the like
	codeTimeout  = "timeout"  // no reply within the timeout
	codeProtocol = "protocol" // bytes that are no reply
	codeConnect  = "connect"  // a lost connection could not be opened again
)

// ErrorCount is all errors.
func (r *Result) ErrorCount() int64 {
	var n int64
	for _, c := range r.Errors {
		n += c
	}
	return n
}

// PerSecond is a count of the measured time as a rate.
func (r *Result) PerSecond(n int64) float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(n) / r.Elapsed.Seconds()
}

// Histograms hold from 1 ns up to an hour, to three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Hour), 3)
}
