package main

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/worker"
)

// usableNow tells why no ID can be made by a layout at a moment.
func usableNow(l worker.Layout, now time.Time) error {
	const advice = "give it an epoch of its own, as in %s,epoch=%s"
	name := worker.PresetName(l)
	if name == "" {
		name = "..."
	}
	begin, end := l.Time(worker.Fields{}), l.Expires()
	today := now.UTC().Format(time.DateOnly)
	switch {
	case !now.Before(end):
		return fmt.Errorf("its time field was used up on %s: "+advice, end.Format(time.DateOnly), name, today)
	case now.Before(begin):
		return fmt.Errorf("its epoch, %s, is yet to come: "+advice, begin.Format(time.RFC3339), name, today)
	}
	return nil
}
