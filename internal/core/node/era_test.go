package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/worker"
)

// A clock that the layout cannot hold ends a start before a worker's record is written, also where ZooKeeper's clock is
// the same one, and where the node could start from its directory. The error names the clock and the layout's years.
func TestStartWithAClockOutsideTheLayout(t *testing.T) {
	for name, c := range map[string]struct {
		year  int
		again bool // the directory has a confirmed worker
	}{
		"1970": {1970, false}, "2081": {2081, false}, "1970, again": {1970, true}, "2081, again": {2081, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Mem = memzk.New(func() int64 { return r.Wall() / 1e6 })
			if c.again {
				r.confirmedAndStopped()
			}
			r.Step(time.Until(time.Date(c.year, 2, 1, 0, 0, 0, 0, time.UTC)))
			n := r.start()
			var err error
			select {
			case err = <-n.done:
				n.done <- err
			case <-time.After(10 * time.Second):
				t.Fatal("it does not end")
			}
			if _, ok := errors.AsType[*ClockError](err); !ok {
				t.Fatal(err)
			}
			for _, words := range []string{"the clock says " + name[:4], "from 2010-11-04 to 2080-07-10", "NTP"} {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%v does not say %q", err, words)
				}
			}
			if _, _, err := r.Mem.Peek("/workers/0000"); c.again != (err == nil) {
				t.Errorf("a worker's record: %v", err)
			}
		})
	}
}

// A node that runs beyond the layout's years tells its clients which they are.
func TestRefusalNamesTheYearsOfTheLayout(t *testing.T) {
	n := newRig(t).start().untilReady()
	err := n.explain(n.serving.Load(), worker.ErrTimeExhausted)
	if err == nil || !strings.HasSuffix(err.Error(), "is used up: IDs have times from 2010-11-04 to 2080-07-10") {
		t.Error(err)
	}
}
