package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// counter is a generator that flaked takes over from.
type counter struct {
	from string
	// writer returns a function that issues the next numbers, as one more server or program of this generator.
	writer func() func() []int64
	// query is what docs/migration-sequences.md asks the source, and rows the shell command that prints the answer.
	query, rows string
	// increment is the distance of two numbers.
	increment int64
	// back is the statement of the document after which the source goes on with 5000, and do runs a statement.
	back string
	do   func(statement string)
}

// A live source under load is imported, stopped, verified, and continued by flaked. All numbers of both are in one
// list. FLAKED_TEST_IMPORTS=require fails the test if a server is missing.
func TestImportsFromLiveSources(t *testing.T) {
	t.Parallel()
	live := newServers(t)
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	nodes := s.startedTogether(2)
	s.sequences()
	for _, c := range live.counters() {
		t.Run(c.from, func(t *testing.T) {
			t.Parallel()
			i := &importing{t: t, site: s, nodes: nodes, counter: c, all: &values{t: t, seen: map[int64]bool{}}}
			i.cutOver()
			i.isExact()
			i.goesBack()
		})
	}
}

// importing is the import of one counter.
type importing struct {
	t     *testing.T
	site  *site
	nodes []*node
	counter
	all     *values
	highest atomic.Int64 // of what the source has issued
}

// importRows pipes the rows of the source into `flaked seq import`.
func (i *importing) importRows(prefix string, args ...string) result {
	i.t.Helper()
	flaked := fmt.Sprintf("'%s' seq import --zk '%s' --from %s --prefix %s- %s", i.site.build.binary(i.t), i.site.connect, i.from, i.from+"-"+prefix, strings.Join(args, " "))
	cmd := exec.Command("bash", "-o", "pipefail", "-c", i.rows+" | "+flaked)
	return executeCmd(i.t, cmd)
}

// name returns the name of the sequence that importRows creates with this prefix.
func (i *importing) name(prefix string) string { return i.from + "-" + prefix + "-order" }

// writers issues numbers of the source in several goroutines, until the function that it returns is called.
func (i *importing) writers(count int) (stop func()) {
	var stopped atomic.Bool
	var group sync.WaitGroup
	for range count {
		next := i.writer()
		group.Go(func() {
			for !stopped.Load() {
				for _, v := range next() {
					i.all.add(v)
					for old := i.highest.Load(); v > old && !i.highest.CompareAndSwap(old, v); old = i.highest.Load() {
					}
				}
			}
		})
	}
	return func() { stopped.Store(true); group.Wait() }
}

// progress waits until the source has issued more numbers.
func (i *importing) progress() {
	i.t.Helper()
	want := i.highest.Load() + 300
	eventually(i.t, "the source issues numbers", func() bool { return i.highest.Load() > want })
}

// cutOver imports the counter while writers use it, twice: with a large margin, and without one. The writers go on
// after that, so only the first is verified. Both are started in the end.
func (i *importing) cutOver() {
	stop := i.writers(4)
	i.progress()
	i.importRows("good", "--margin 100000000").wants(i.t, 0, "1 created.")
	i.importRows("late", "--margin 0").wants(i.t, 0, "1 created.")
	i.progress()
	for _, n := range i.nodes {
		if line, err := n.ask("NEXT " + i.name("good")); err == nil || !strings.HasPrefix(err.Error(), "-ERR reason=held ") {
			i.t.Errorf("before the start: %q %v", line, err)
		}
	}
	stop()
	i.importRows("late", "--verify --start").wants(i.t, 1, "1 behind the source.")
	if line, err := i.nodes[0].ask("NEXT " + i.name("late")); err == nil || !strings.HasPrefix(err.Error(), "-ERR reason=held ") {
		i.t.Errorf("not verified: %q %v", line, err)
	}
	i.importRows("good", "--verify --start --wait").wants(i.t, 0, "1 started. All nodes have followed.")
	i.importRows("late", "--verify --raise --start --margin 0 --wait").wants(i.t, 0, "1 started. All nodes have followed.")
	var asking sync.WaitGroup
	for _, n := range i.nodes {
		for range 2 {
			asking.Go(func() { i.ask(n, i.name("good"), 200, i.all) })
			asking.Go(func() { i.ask(n, i.name("late"), 20, &values{t: i.t, seen: map[int64]bool{}}) })
		}
	}
	asking.Wait()
}

// ask takes values of flaked, which must be above all numbers of the source.
func (i *importing) ask(n *node, name string, count int, to *values) {
	for range count {
		n.until("it gives a value", func() bool {
			v, ok := n.next(name)
			if ok {
				if to.add(v); v <= i.highest.Load() {
					i.t.Errorf("%s: %d after %d of the source", name, v, i.highest.Load())
				}
			}
			return ok
		})
	}
}

// isExact imports the counter at rest and without a margin. Then flaked must begin with the number that the source
// would have issued next.
func (i *importing) isExact() {
	i.importRows("exact", "--margin 0").wants(i.t, 0, "1 created.")
	i.importRows("exact", "--verify --start").wants(i.t, 0, "1 started.")
	var first, second int64
	n := i.nodes[0]
	n.until("it gives two values", func() bool {
		answers, err := n.lines("NEXT "+i.name("exact")+"\nNEXT "+i.name("exact")+"\n", 2)
		if err != nil || strings.HasPrefix(answers[0], "-") {
			return false
		}
		first, _ = strconv.ParseInt(answers[0], 10, 64)
		second, _ = strconv.ParseInt(answers[1], 10, 64)
		return true
	})
	if next := i.writer()()[0]; first != next || second != first+i.increment {
		i.t.Errorf("flaked goes on with %d and %d, the source with %d in steps of %d", first, second, next, i.increment)
	}
}

// goesBack lets the source go on where flaked ends.
func (i *importing) goesBack() {
	name := i.name("good")
	i.site.command("seq", "delete", name, "--confirm", "delete sequence "+name, "--wait").wants(i.t, 0, "All nodes have followed.")
	var shown struct {
		Next int64 `json:"next,string"`
	}
	if r := i.site.command("seq", "show", name, "-o", "json"); json.Unmarshal([]byte(r.stdout), &shown) != nil {
		i.t.Fatalf("%+v", r)
	}
	i.do(strings.Replace(i.back, "5000", fmt.Sprint(shown.Next), 1))
	if first := i.writer()()[0]; first < shown.Next {
		i.t.Errorf("the source goes on with %d, below %d", first, shown.Next)
	}
	stop := i.writers(2) // their numbers must be new
	eventually(i.t, "the source issues numbers", func() bool { return i.highest.Load() > shown.Next+100 })
	stop()
}

func TestImportQueriesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/migration-sequences.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range new(servers).counters() {
		for _, statement := range []string{c.query, c.back} {
			if !strings.Contains(string(doc), statement) {
				t.Errorf("docs/migration-sequences.md has nothing like this for %s: %s", c.from, statement)
			}
		}
	}
}
