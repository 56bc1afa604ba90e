package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// tinyidClient asks as tinyid's Java client does: it draws one of the servers for each block, asks it once, and asks for
// the next block when it has issued the value loadingId. One goroutine uses it.
type tinyidClient struct {
	servers       []string
	now, next     *tinyidBlock
	asked, failed int
}

type tinyidBlock struct{ current, loading, max, delta, remainder int64 }

// fetch asks for a block.
func (c *tinyidClient) fetch() (err error) {
	c.asked++
	defer func() {
		if err != nil {
			c.failed++
		}
	}()
	server := c.servers[rand.IntN(len(c.servers))]
	client := http.Client{Timeout: 5 * time.Second}
	res, err := client.Post(server+"/tinyid/id/nextSegmentIdSimple?token=none&bizType=order", "application/x-www-form-urlencoded", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	words := strings.Split(string(body), ",")
	if err != nil || len(words) != 5 {
		return fmt.Errorf("%q %v", body, err)
	}
	var n [5]int64
	for k, word := range words {
		if n[k], err = strconv.ParseInt(word, 10, 64); err != nil {
			return err
		}
	}
	c.next = &tinyidBlock{n[0], n[1], n[2], n[3], n[4]}
	return nil
}

// id returns the next value.
func (c *tinyidClient) id() (int64, error) {
	for {
		if c.now == nil {
			if c.next == nil {
				if err := c.fetch(); err != nil {
					return 0, err
				}
			}
			c.now, c.next = c.next, nil
			for tries := int64(0); c.now.current%c.now.delta != c.now.remainder && tries <= c.now.delta; tries++ {
				if c.now.current++; c.now.current%c.now.delta == c.now.remainder {
					c.now.current -= c.now.delta
					break
				}
			}
		}
		c.now.current += c.now.delta
		if c.now.current > c.now.max {
			c.now = nil
			continue
		}
		if c.now.current >= c.now.loading && c.next == nil {
			_ = c.fetch() // the block in hand lasts
		}
		return c.now.current, nil
	}
}

// Clients that work as tinyid's Java client does get no value twice from two nodes, of which one is killed and started
// again.
func TestTinyidsClient(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	var nodes []*node
	for range 2 { // each on a port that it keeps when it is started again
		nodes = append(nodes, s.node("--admin", fmt.Sprintf("127.0.0.1:%d", freePorts(t))).start())
	}
	for _, n := range nodes {
		n.ready()
	}
	s.create("order")
	for _, n := range nodes {
		n.until("it gives a value", func() bool { _, ok := n.next("order"); return ok })
	}
	servers := []string{httpAt(t, nodes[0].proc), httpAt(t, nodes[1].proc)}
	all := &values{t: t, seen: map[int64]bool{}}
	clients := make([]*tinyidClient, 4)
	var wg sync.WaitGroup
	half, again := make(chan struct{}, len(clients)), make(chan struct{})
	for k := range clients {
		c := &tinyidClient{servers: servers}
		clients[k] = c
		wg.Go(func() {
			for i := range 20_000 {
				v, err := c.id()
				for tries := 0; err != nil && tries < 50; tries++ {
					v, err = c.id()
				}
				if err != nil {
					t.Error(err)
					return
				}
				all.add(v)
				switch i {
				case 10_000:
					half <- struct{}{}
				case 15_000:
					<-again // the rest is from both nodes
				}
			}
		})
	}
	<-half
	nodes[0].kill()
	nodes[0].start().ready()
	nodes[0].until("it gives a value again", func() bool { _, ok := nodes[0].next("order"); return ok })
	close(again)
	wg.Wait()
	asked, failed := 0, 0
	for _, c := range clients {
		asked, failed = asked+c.asked, failed+c.failed
	}
	t.Logf("%d values, %d blocks asked for, %d requests failed", len(all.seen), asked, failed)
	if len(all.seen) != 80_000 || asked < 80 {
		t.Errorf("%d values in %d blocks", len(all.seen), asked)
	}
}

// The routes for sequences, by the shipped binary on a real ZooKeeper.
func TestSequencesOverHTTP(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.node("--admin", "127.0.0.1:0")
	n.start().ready()
	s.create("order")
	n.until("it gives a value", func() bool { _, ok := n.next("order"); return ok })
	at := httpAt(t, n.proc)
	last := int64(0)
	for _, row := range []struct{ method, path, before, after string }{
		{"GET", "/api/segment/get/order", "", ""},
		{"POST", "/v1/sequences/order/next", `{"name":"order","values":["`, `"]}` + "\n"},
		{"GET", "/tinyid/id/nextId?bizType=order", `{"data":[`, `],"code":200,"message":""}` + "\n"},
		{"POST", "/tinyid/id/nextIdSimple?bizType=order", "", ""},
	} {
		req, err := http.NewRequest(row.method, at+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		v, parseErr := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(string(body), row.before), row.after), 10, 64)
		if err != nil || parseErr != nil || v <= last {
			t.Errorf("%s: %q after %d", row.path, body, last)
		}
		last = v
	}
}
