package client

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/positions"
)

// lookAtOnce lets the next call of a sequence look at its owner again.
func lookAtOnce(c *Client) {
	values := c.values
	values.mu.Lock()
	defer values.mu.Unlock()
	values.owners.next = time.Time{}
	for at, o := range values.owners.known {
		o.until = time.Time{}
		values.owners.known[at] = o
	}
}

// The client goes to the owner of an ordered sequence, follows it, and goes elsewhere if it fails.
func TestOwnerIsAskedItself(t *testing.T) {
	all, addrs := nodes(t, 3)
	owner := addrs[1]
	for i, n := range all {
		n.SetShown(func(string) string { return "owner=" + owner + " term=1 lease_ms=3000 passed=0" })
		n.SetNext("ticks", int64(1000*i))
	}
	c := open(t, Config{Addrs: addrs})
	ticks := c.Sequence("ticks")
	wants := func(when string, want int64) {
		t.Helper()
		if v, err := ticks.Next(by(t, long)); v != want || err != nil {
			t.Errorf("%s: %d %v, want %d", when, v, err, want)
		}
	}
	wants("at first", 0)
	wants("owner known", 1000)
	wants("owner known", 1001)
	owner = addrs[2]
	lookAtOnce(c)
	wants("the last time at the former owner", 1002)
	wants("at the new owner", 2000)
	all[2].Stop()
	wants("the owner is gone", 1)
	owner = "elsewhere:7609"
	lookAtOnce(c)
	wants("the owner is none of Addrs", 2)
	wants("the owner is none of Addrs", 3)
	if n := all[0].Counts().looks + all[1].Counts().looks; n > 4 {
		t.Errorf("the client looked %d times", n)
	}
}

// The client computes the sections of the names of a family, so it knows the owner of a name that it never used, and
// remembers no names.
func TestOwnersOfAFamilyAreKeptBySection(t *testing.T) {
	const sections = 2
	all, addrs := nodes(t, sections)
	for _, n := range all {
		n.SetShown(func(name string) string {
			section, _ := positions.SectionAndLane(name, sections)
			return fmt.Sprintf("owner=%s term=1 family=msg:* section=%d sections=%d", addrs[section], section, sections)
		})
	}
	c := open(t, Config{Addrs: addrs})
	ask := func(name string) int64 {
		t.Helper()
		v, err := c.Sequence(name).Next(by(t, long))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	names := func(section int) (found []string) {
		for i := 0; len(found) < 50; i++ {
			name := fmt.Sprint("msg:", i)
			if s, _ := positions.SectionAndLane(name, sections); s == section {
				found = append(found, name)
			}
		}
		return found
	}
	for section := range sections {
		lookAtOnce(c)
		ask(names(section)[0])
		for i, name := range names(section)[1:] {
			all[section].SetNext(name, int64(100+i))
			if v := ask(name); v != int64(100+i) {
				t.Fatalf("%s of section %d: %d", name, section, v)
			}
		}
	}
	if n := all[0].Counts().looks + all[1].Counts().looks; n != sections {
		t.Errorf("the client looked %d times", n)
	}
}

// The program decides whether it asks again if the owner has not answered the node that asked it.
func TestUnknownOutcomeIsNotRepeated(t *testing.T) {
	all, addrs := nodes(t, 2)
	all[0].SetShown(func(string) string { return "owner=- term=3" })
	c := open(t, Config{Addrs: addrs})
	all[0].Refuse(1, ids.NOTREADY, "reason=unknown the owner has not answered")
	_, err := c.Sequence("ticks").Next(by(t, long))
	if reason(err) != "unknown" || !strings.Contains(err.Error(), ids.ErrUnavailable.Error()) {
		t.Error(err)
	}
	if v, err := c.Sequence("ticks").Next(by(t, long)); v != 1 || err != nil {
		t.Error(v, err)
	}
}

func TestOwnersTakeBoundedMemory(t *testing.T) {
	var o owners
	now := time.Now()
	for i := range 3 * maxOwners {
		o.learn(fmt.Sprint("order", i), "name=x mode=segment", nil, now)
		o.learn(fmt.Sprint("f", i, ":a"), fmt.Sprintf("owner=- family=f%d:* section=0 sections=1", i), nil, now)
		if len(o.known) > maxOwners || len(o.families) > maxFamilies {
			t.Fatalf("%d owners, %d families", len(o.known), len(o.families))
		}
	}
	o.learn("msg:a", "owner=- family=msg:* section=0 sections=1", nil, now)
	o.learn("msg:b", "-NOTREADY reason=no-block x", nil, now)
	if o.sectionOf("msg:c") != (section{"msg:", 0}) || !o.ordered("msg:d") {
		t.Error("a refusal has changed what is known")
	}
	o.learn("msg:a", "name=msg:a mode=segment", nil, now)
	if o.sectionOf("msg:c") != (section{"msg:c", -1}) {
		t.Error("a family that is gone is still known")
	}
}

// Sequences whose owner is dead keep their callers waiting, and no others.
func TestStuckSequencesBlockNoOthers(t *testing.T) {
	all, addrs := nodes(t, 1)
	all[0].SetShown(func(string) string { return "owner=- term=1" })
	c := open(t, Config{Addrs: addrs, Conns: 1, Timeout: long})
	names := []string{"stuck0", "stuck1", "stuck2", "stuck3", "well"}
	for _, name := range names { // the client learns that they are ordered
		lookAtOnce(c)
		if _, err := c.Sequence(name).Next(by(t, long)); err != nil {
			t.Fatal(err)
		}
	}
	release, held := make(chan struct{}), make(chan struct{}, len(names))
	all[0].Hold(func(name string) string {
		if name != "well" {
			held <- struct{}{}
			<-release
		}
		return ""
	})
	var wg sync.WaitGroup
	for _, name := range names[:4] {
		wg.Go(func() {
			if v, err := c.Sequence(name).Next(by(t, long)); v != 2 || err != nil {
				t.Error(v, err)
			}
		})
	}
	for range names[:4] {
		<-held
	}
	if v, err := c.Sequence("well").Next(by(t, long)); v != 2 || err != nil {
		t.Error(v, err)
	}
	close(release)
	wg.Wait()
	until(t, "the client has as many connections as before", func() bool {
		_, _ = c.Sequence("well").Next(by(t, long))
		c.values.mu.Lock()
		defer c.values.mu.Unlock()
		return c.values.connWorkers == 1 && c.values.stuck == 0
	})
}
