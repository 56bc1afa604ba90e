package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result holds the measurements of a run.
type Result struct {
	// Elapsed is the measured time: Duration, or less if the run was interrupted.
	Elapsed     time.Duration
	Interrupted bool
	// Requests counts the requests that were answered without an error in the measured
	// time. IDs counts the IDs in their replies.
	Requests, IDs int64
	// Latency holds the latencies, in ns, of all requests that were due in the measured
	// time. Requests that were never answered are in it with the time that they waited.
	Latency *hdrhistogram.Histogram
	// Errors counts errors by code, from the start of the run. Codes of replies are in
	// capitals, codes of the generator in small letters.
	Errors map[string]int64
	// Unanswered is how many requests were due before the end and got no reply within
	// the timeout after it.
	Unanswered int64
	// Check is the result of checking all IDs of the run. It is nil without
	// Config.Check.
	Check *CheckResult
	// ClientCPU is the CPU time of this process in the measured time.
	ClientCPU time.Duration
	// Server is what Config.PID used. It is nil if that could not be read.
	Server *ServerUse
}

// ServerUse is what a server used of its machine in the measured time.
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

// ErrorCount returns the number of all errors.
func (r *Result) ErrorCount() int64 {
	var n int64
	for _, c := range r.Errors {
		n += c
	}
	return n
}

// PerSecond returns n divided by the measured time in seconds.
func (r *Result) PerSecond(n int64) float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(n) / r.Elapsed.Seconds()
}

// newHistogram returns a histogram of 1 ns to an hour, with three significant digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Hour), 3)
}
