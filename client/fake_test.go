package client

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

// FakeNode is a node without a cluster, which answers the requests of a client. Its methods may be called at any time
// by any goroutine.
type FakeNode struct {
	// Addr is the address of the node, for client.Config.Addrs. Stop and Start do not
	// change it.
	Addr string

	serving sync.WaitGroup

	mu       sync.Mutex            // guards what follows
	listener net.Listener          // nil while the node is stopped
	conns    map[*net.TCPConn]bool // those that are open
	stopped  chan struct{}         // closed by Stop
	counts   counts
	last     worker.ID
	cluster  string
	next     map[string]int64         // of sequences: the next value, by name. 1 for other names
	shown    func(name string) string // what SEQ says besides the name
	hold     func(name string) string // called before a value is given
	refusal  string
	refuses  int // how many more requests to refuse
	delay    time.Duration
	cutAt    int // bytes of replies on a connection before it is cut; -1: no cut
}

// counts has the numbers of a node's events: connections, requests for IDs and the IDs in the replies, and requests of
// SEQ.
type counts struct{ conns, requests, ids, looks int }

// NewFakeNode starts a node on a free port of the loopback interface. It panics if it cannot
// listen. Stop must be called.
func NewFakeNode() *FakeNode {
	s := &FakeNode{cutAt: -1, Addr: "127.0.0.1:0", next: make(map[string]int64)}
	s.Start()
	return s
}

// set changes a field.
func (s *FakeNode) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// SetLast makes the next ID the one after last.
func (s *FakeNode) SetLast(last worker.ID) { s.set(func() { s.last = last }) }

// SetNext makes v the next value of a sequence. Every name is a sequence of this node, from 1 on.
func (s *FakeNode) SetNext(name string, v int64) { s.set(func() { s.next[name] = v }) }

// SetShown makes f return the fields that SEQ has besides the name, as of an ordered sequence.
func (s *FakeNode) SetShown(f func(name string) string) { s.set(func() { s.shown = f }) }

// Hold makes requests for values call f first, which may block, and may return a refusal.
func (s *FakeNode) Hold(f func(name string) string) { s.set(func() { s.hold = f }) }

// Refuse makes the next n requests for IDs and values fail with the error -CODE text, unless Serve is called before.
func (s *FakeNode) Refuse(n int, code ids.Code, text string) {
	s.set(func() { s.refusal, s.refuses = fmt.Sprintf("-%s %s\n", code, text), n })
}

// Delay makes every request for IDs, not for values, take d longer, until Serve is called.
func (s *FakeNode) Delay(d time.Duration) { s.set(func() { s.delay = d }) }

// CutReplies makes the node cut each connection after n bytes of replies, until Serve is called.
func (s *FakeNode) CutReplies(n int) { s.set(func() { s.cutAt = n }) }

// Serve cancels Refuse, Delay and CutReplies.
func (s *FakeNode) Serve() { s.set(func() { s.refuses, s.delay, s.cutAt = 0, 0, -1 }) }

// Counts returns what the node has seen until now.
func (s *FakeNode) Counts() (c counts) {
	s.set(func() { c = s.counts })
	return c
}

// Start makes the node listen again after Stop. It does nothing if the node is running.
func (s *FakeNode) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return
	}
	l, err := net.Listen("tcp", s.Addr)
	if err != nil {
		panic(fmt.Sprintf("fake node: %v", err))
	}
	s.Addr, s.listener = l.Addr().String(), l
	s.conns, s.stopped = make(map[*net.TCPConn]bool), make(chan struct{})
	s.serving.Go(func() {
		for nc, err := l.Accept(); err == nil; nc, err = l.Accept() {
			s.serving.Go(func() { s.serve(nc.(*net.TCPConn)) })
		}
	})
}

// Stop acts like kill -9: connections are reset, and new ones refused. It may be called more than once.
func (s *FakeNode) Stop() {
	s.set(func() {
		if s.listener == nil {
			return
		}
		_ = s.listener.Close()
		s.listener = nil
		close(s.stopped)
		for nc := range s.conns {
			_ = nc.SetLinger(0)
			_ = nc.Close()
		}
	})
	s.serving.Wait()
}

// serve answers the requests of a connection until either side ends it.
func (s *FakeNode) serve(nc *net.TCPConn) {
	defer nc.Close()
	running := false
	s.set(func() {
		if running = s.listener != nil; running {
			s.conns[nc] = true
			s.counts.conns++
		}
	})
	if !running {
		return
	}
	defer s.set(func() { delete(s.conns, nc) })
	sent := 0
	for in := bufio.NewScanner(nc); in.Scan(); {
		if strings.HasPrefix(in.Text(), "WORKER") {
			name := ""
			s.set(func() { name = s.cluster })
			_, _ = io.WriteString(nc, "worker=0 cluster="+name+" cluster_uuid=of-"+name+"\n")
			continue
		}
		reply, cutAt := s.answer(strings.Fields(in.Text()))
		if cutAt >= 0 {
			reply = reply[:min(len(reply), max(cutAt-sent, 0))]
		}
		n, err := io.WriteString(nc, reply)
		if sent += n; err != nil || sent == cutAt || n == 0 {
			return
		}
	}
}

// answer returns the reply to a request, and where to cut the replies of its connection.
func (s *FakeNode) answer(request []string) (reply string, cutAt int) {
	s.mu.Lock()
	delay, hold, stopped := s.delay, s.hold, s.stopped
	s.mu.Unlock()
	verb, n := request[0], 1
	switch {
	case verb == "GET":
		select {
		case <-time.After(delay):
		case <-stopped:
		}
	case verb != "SEQ" && verb != "READY" && hold != nil:
		if refusal := hold(request[1]); refusal != "" {
			return refusal + "\n", -1
		}
	}
	if count, err := strconv.Atoi(request[len(request)-1]); err == nil {
		n = count
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reply(verb, request[1:], n), s.cutAt
}

// reply returns the reply to a request for n numbers, or to SEQ or READY. mu is held.
func (s *FakeNode) reply(verb string, args []string, n int) string {
	switch {
	case verb == "SEQ":
		s.counts.looks++
		if s.shown == nil {
			return fmt.Sprintf("name=%s mode=segment\n", args[0])
		}
		return fmt.Sprintf("name=%s mode=ordered %s\n", args[0], s.shown(args[0]))
	case verb == "READY" && s.refuses == 0:
		return "OK\n"
	case verb == "READY":
		return s.refusal
	case verb == "GET":
		s.counts.requests++
	}
	if s.refuses > 0 {
		s.refuses--
		return s.refusal
	}
	if verb == "GET" {
		s.counts.ids += n
		s.last += worker.ID(n)
		return lines(int64(s.last)-int64(n)+1, n)
	}
	first, ok := s.next[args[0]]
	if !ok {
		first = 1
	}
	s.next[args[0]] = first + int64(n)
	if verb == "RANGE" {
		return fmt.Sprintln(first, first+int64(n)-1)
	}
	return lines(first, n)
}

// lines returns n numbers from first on.
func lines(first int64, n int) string {
	var b []byte
	for i := range int64(n) {
		b = append(strconv.AppendInt(b, first+i, 10), '\n')
	}
	return string(b)
}
