package coordinator

import (
	"reflect"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// A process remembers the holders whose records it has read, for as long as their leases may run.
func TestMetPeersAreRememberedForALease(t *testing.T) {
	now := int64(labStart)
	c := New(Config{Now: func() int64 { return now }})
	c.mine.LeaseMs = time.Hour.Milliseconds()
	reads := func(slots ...Slot) {
		var records []store.Record
		for _, s := range slots {
			records = append(records, store.Record{Found: true, Data: s.marshal()})
		}
		c.meet(append(records, store.Record{}))
	}
	met := func() (names []string) {
		for _, p := range c.Met() {
			names = append(names, p.Name+" "+p.Address)
		}
		return names
	}
	wants := func(what string, want ...string) {
		t.Helper()
		if got := met(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	holder := func(node, address string) Slot {
		return Slot{Node: node, Nonce: "x", Term: 1, LeaseUntil: 1, Labels: Labels{Name: node, Address: address}}
	}
	stopped, released := holder("c", "c:1"), holder("d", "d:1")
	stopped.Stopped, released.Released = true, true
	reads(holder("b", "b:1"), holder("a", "a:1"), stopped, released, holder("e", ""), freeSlot())
	wants("holders that run, with an address", "a a:1", "b b:1")
	now += time.Minute.Milliseconds()
	reads(holder("b", "b:2"))
	wants("the present address", "a a:1", "b b:2")
	now += (time.Hour + metAgain).Milliseconds()
	reads(holder("b", "b:2"))
	wants("a was not read for longer than a lease", "b b:2")
}
