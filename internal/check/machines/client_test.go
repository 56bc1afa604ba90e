//go:build linux

package machines

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// ask sends one request on a connection of its own, and returns the first line of the reply.
func ask(addr, request string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\n", request); err != nil {
		return "", err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSuffix(reply, "\n"), err
}

// status is what the tests read of the reply to STATUS.
type status struct {
	Node struct {
		Worker    *int     `json:"worker"`
		Node      string   `json:"node"` // its identity
		LeaseLeft *float64 `json:"lease_left_ms"`
		Clock     struct {
			Offset float64 `json:"offset_ms"`
		} `json:"clock"`
	} `json:"node"`
}

func statusOf(addr string) (s status, err error) {
	reply, err := ask(addr, "STATUS")
	if err == nil {
		err = json.Unmarshal([]byte(reply), &s)
	}
	return s, err
}

// workerOf returns the worker of the node at addr.
func workerOf(t testing.TB, addr string) int {
	t.Helper()
	s, err := statusOf(addr)
	must(t, err)
	if s.Node.Worker == nil {
		t.Fatalf("%s has no worker", addr)
	}
	return *s.Node.Worker
}

// untilLease waits until the node at addr has a lease that outlasts a slow start without ZooKeeper.
func untilLease(t testing.TB, addr string, want time.Duration) {
	t.Helper()
	if !harness.Within(4*time.Minute, func() bool {
		s, err := statusOf(addr)
		return err == nil && s.Node.LeaseLeft != nil && *s.Node.LeaseLeft >= float64(want.Milliseconds())
	}) {
		t.Fatalf("no lease of %s", want)
	}
}

// kept is all that clients have got.
type kept struct {
	mu          sync.Mutex
	ids, values map[int64]bool
	twice       []string // IDs and values that came again
	highest     int64    // ID
	refusals    map[string]int
}

func newKept() *kept {
	return &kept{ids: map[int64]bool{}, values: map[int64]bool{}, refusals: map[string]int{}}
}

// add takes one line of the reply to a request, which is for IDs if it begins with GET.
func (k *kept) add(what, reply string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.values
	if strings.HasPrefix(what, "GET") {
		all = k.ids
	}
	n, err := strconv.ParseInt(reply, 10, 64)
	if err != nil {
		code, _, _ := strings.Cut(reply, " ")
		k.refusals[code]++
		return
	}
	if all[n] {
		k.twice = append(k.twice, reply)
	}
	all[n] = true
	if strings.HasPrefix(what, "GET") {
		k.highest = max(k.highest, n)
	}
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("%d IDs, %d values, %d twice, refusals %v", len(k.ids), len(k.values), len(k.twice), k.refusals)
}

func (k *kept) count() (ids, values, twice int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ids), len(k.values), len(k.twice)
}

func (k *kept) highestID() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.highest
}

// from asks the node at addr for IDs and values until the returned function is called.
func (k *kept) from(addr string) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := k.session(ctx, addr); err != nil {
				harness.Pass(ctx, 100*time.Millisecond)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// session asks on one connection until that breaks.
func (k *kept) session(ctx context.Context, addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for ctx.Err() == nil {
		if err := conn.SetDeadline(time.Now().Add(3 * time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("GET 50\nNEXT order\n")); err != nil {
			return err
		}
		for i := 0; i < 51; i++ {
			reply, err := in.ReadString('\n')
			if err != nil {
				return err // a number that was cut off is none
			}
			reply = strings.TrimSuffix(reply, "\n")
			if i < 50 && strings.HasPrefix(reply, "-") {
				i = 49 // one refusal answers all
			}
			if i < 50 {
				k.add("GET", reply)
			} else {
				k.add("NEXT", reply)
			}
		}
	}
	return errors.New("ended")
}

// waitFor waits until another n IDs have come.
func (k *kept) waitFor(t testing.TB, n int) {
	t.Helper()
	before, _, _ := k.count()
	if !harness.Within(2*time.Minute, func() bool { now, _, _ := k.count(); return now >= before+n }) {
		t.Fatalf("fewer than %d IDs in two minutes: %s", n, k)
	}
}

// one gets one ID.
func (k *kept) one(t testing.TB, addr string) int64 {
	t.Helper()
	reply, err := ask(addr, "GET")
	must(t, err)
	id, err := strconv.ParseInt(reply, 10, 64)
	must(t, err)
	k.add("GET", reply)
	return id
}

func (k *kept) wantsNoneTwice(t testing.TB) {
	t.Helper()
	if _, _, twice := k.count(); twice > 0 {
		t.Errorf("twice: %v", k.twice[:min(twice, 10)])
	}
}

// sequence creates the sequence that clients ask for.
func sequence(t testing.TB, zk *zktest.Ensemble) {
	t.Helper()
	run(t, harness.Shipped.Binary(t), "seq", "create", "order", "--zk", zk.Addr())
}
