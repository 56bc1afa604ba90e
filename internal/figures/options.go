package figures

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

// Options are the flags that the benchmarks with rounds share.
type Options struct {
	Rounds   int
	Duration time.Duration
	Raw      string
	From     string
	Docs     string
}

// Register defines the flags. duration and raw are the defaults of -duration and -raw.
func (o *Options) Register(duration time.Duration, raw string) {
	flag.IntVar(&o.Rounds, "rounds", 5, "rounds per case")
	flag.DurationVar(&o.Duration, "duration", duration, "duration of each measurement")
	flag.StringVar(&o.Raw, "raw", raw, "write the raw results here")
	flag.StringVar(&o.From, "from", "", "measure nothing and write the tables from the raw results in this file")
	flag.StringVar(&o.Docs, "docs", "docs/performance.md", "write the tables between the markers in this file (empty: none)")
}

// Obtain measures and writes the raw results, or reads those of an earlier run (-from). If
// measure fails, Obtain still writes the results that it returned.
func Obtain[T any](o Options, measure func() (*T, error)) (*T, error) {
	if o.From != "" {
		text, err := os.ReadFile(o.From)
		if err != nil {
			return nil, err
		}
		r := new(T)
		return r, json.Unmarshal(text, r)
	}
	if o.Rounds < 1 || o.Duration <= 0 {
		return nil, errors.New("-rounds and -duration must be positive")
	}
	r, err := measure()
	if r == nil {
		return nil, err
	}
	text, jsonErr := json.MarshalIndent(r, "", " ")
	return r, errors.Join(err, jsonErr, os.WriteFile(o.Raw, text, 0o644))
}

// Medians says over how many rounds the figures are medians. A run of few rounds is a trial.
func Medians(rounds int) string {
	if rounds < 5 {
		return fmt.Sprintf("**a trial only**, rounds: %d", rounds)
	}
	return fmt.Sprintf("medians of %d rounds", rounds)
}
