package main

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/limits"
)

// doubt is the reason why an ID was most likely not made at the time that it decodes to. Every
// layout decodes every number, so a wrong layout shows only by doubtful times. "" means no doubt.
type doubt string

const (
	beforeFlaked doubt = "before 2020"
	inTheFuture  doubt = "in the future"
)

// oldest is the earliest time that is not doubted. flaked is younger than that.
var oldest = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// mostAhead bounds how far an ID's time may be ahead of this machine's clock. Both clocks may
// be off, and a node may make IDs up to its reserved bound.
const mostAhead = limits.ClocksApart + limits.MaxReserve

// doubtOf returns the doubt about an ID that decodes to the time made.
func doubtOf(made, now time.Time) doubt {
	switch {
	case made.Before(oldest):
		return beforeFlaked
	case made.After(now.Add(mostAhead)):
		return inTheFuture
	}
	return ""
}

// oddTimes counts doubtful IDs, and keeps the first.
type oddTimes struct {
	old, future int
	first       decodedID
}

func (o *oddTimes) add(id decodedID) {
	switch id.Warning {
	case "":
		return
	case beforeFlaked:
		o.old++
	case inTheFuture:
		o.future++
	}
	if o.first.ID == "" {
		o.first = id
	}
}

// text returns the warning for people, empty if there is nothing to warn of.
func (o oddTimes) text(total int) string {
	var when string
	switch {
	case o.old == 0 && o.future == 0:
		return ""
	case o.future == 0:
		when = string(beforeFlaked)
	case o.old == 0:
		when = string(inTheFuture)
	default:
		when = string(beforeFlaked) + " or " + string(inTheFuture)
	}
	whose, first, advice := "the time", ", "+o.first.Time+",", "Most likely another layout made the ID. Check --layout, --addr or --zk"
	if total > 1 {
		whose, first = fmt.Sprintf("the time of %d of %d IDs", o.old+o.future, total), ""
		advice = fmt.Sprintf("The first is %s, %s. Most likely another layout made them. Check --layout, --addr or --zk", o.first.ID, o.first.Time)
	}
	return fmt.Sprintf("%s%s is %s. %s", whose, first, when, advice)
}
