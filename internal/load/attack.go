package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"
)

// Attack is the behaviour of greedy clients: they ask for more IDs than one worker
// makes, and some of them never read the replies. A retry storm of honest clients looks
// the same.
type Attack struct {
	// Name completes "beside clients that ...".
	Name  string
	Conns int
	// run attacks over connections of dial until ctx ends.
	run func(ctx context.Context, a Attack, dial dialFunc) error
}

type dialFunc func(ctx context.Context) (net.Conn, error)

// greedy is the request that all attacks repeat: 10 bytes that ask for 200 KB.
const greedy = "GET 10000\n"

// burst is the time over which askOnce spreads its requests.
const burst = 500 * time.Millisecond

// Attacks returns all attacks.
func Attacks() []Attack {
	return []Attack{
		{"ask for 10,000 IDs on 8,000 connections and close them", 8000, askAndLeave},
		{"ask for 10,000 IDs on 8,000 connections and read none", 8000, askAndStay},
		{"ask for 10,000 IDs on 256 connections, read them and ask again", 256, askAgain},
		{"pipeline requests for 10,000 IDs on 1,000 connections and read none", 1000, pipeline},
		{"reset a connection after each request for 10,000 IDs, 400 times a second", 1, askAndReset},
	}
}

// Run attacks until ctx ends, and then returns nil. It returns an error if it cannot
// open its connections. Connections that the node closes are part of an attack.
func (a Attack) Run(ctx context.Context, dial func(ctx context.Context) (net.Conn, error)) error {
	err := a.run(ctx, a, dial)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (a Attack) openAll(ctx context.Context, dial dialFunc) ([]net.Conn, error) {
	return openAll(a.Conns, func() (net.Conn, error) { return dial(ctx) })
}

func askAndLeave(ctx context.Context, a Attack, dial dialFunc) error {
	return a.askOnce(ctx, dial, func(c net.Conn) { _ = c.Close() })
}

func askAndStay(ctx context.Context, a Attack, dial dialFunc) error {
	return a.askOnce(ctx, dial, func(net.Conn) {})
}

// askOnce sends one request on each connection, evenly over the time of a burst, and calls then
// with the connection. It closes the connections when ctx ends.
func (a Attack) askOnce(ctx context.Context, dial dialFunc, then func(net.Conn)) error {
	conns, err := a.openAll(ctx, dial)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	pace := newPace(time.Duration(int(burst) / len(conns)))
	for _, c := range conns {
		if !pace.wait(ctx) {
			break
		}
		_, _ = io.WriteString(c, greedy)
		then(c)
	}
	<-ctx.Done()
	return nil
}

func askAgain(ctx context.Context, a Attack, dial dialFunc) error {
	return a.each(ctx, dial, func(c net.Conn) {
		in := make([]byte, 64<<10)
		for {
			if _, err := io.WriteString(c, greedy); err != nil {
				return
			}
			busy, err := readReply(c, in)
			if err != nil {
				return
			}
			// Clients that are refused come back a little later, not all at once.
			if busy && !sleep(ctx, time.Duration(rand.Int64N(int64(200*time.Millisecond)))) {
				return
			}
		}
	})
}

// readReply reads a reply of 10,000 lines, or an error line. busy is true for an error
// line.
func readReply(c net.Conn, in []byte) (busy bool, err error) {
	for lines := 0; lines < 10_000; {
		n, err := c.Read(in)
		if err != nil {
			return false, err
		}
		if lines == 0 && in[0] == '-' {
			return true, nil
		}
		lines += bytes.Count(in[:n], []byte{'\n'})
	}
	return false, nil
}

func pipeline(ctx context.Context, a Attack, dial dialFunc) error {
	requests := []byte(strings.Repeat(greedy, 1000))
	return a.each(ctx, dial, func(c net.Conn) {
		for {
			if _, err := c.Write(requests); err != nil {
				return
			}
		}
	})
}

// each runs f on all connections concurrently. When f returns, it opens another
// connection and runs f on that, until ctx ends.
func (a Attack) each(ctx context.Context, dial dialFunc, f func(net.Conn)) error {
	conns, err := a.openAll(ctx, dial)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for _, c := range conns {
		running.Go(func() {
			for c := c; c != nil; c = redial(ctx, dial) {
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				f(c)
				stop()
				_ = c.Close()
			}
		})
	}
	running.Wait()
	return nil
}

// redial tries to open a connection until it succeeds. It returns nil when ctx ends.
func redial(ctx context.Context, dial dialFunc) net.Conn {
	for sleep(ctx, redialAfter) {
		if c, err := dial(ctx); err == nil {
			return c
		}
	}
	return nil
}

func askAndReset(ctx context.Context, _ Attack, dial dialFunc) error {
	const resetsPerSecond = 400
	pace := newPace(time.Second / resetsPerSecond)
	for pace.wait(ctx) {
		c, err := dial(ctx)
		if err != nil {
			return err
		}
		t, ok := c.(*net.TCPConn)
		if !ok {
			return errors.New("only a TCP connection can be reset")
		}
		_, _ = io.WriteString(t, greedy)
		_ = t.SetLinger(0) // Close resets
		_ = t.Close()
	}
	return nil
}

// pace schedules events at fixed times, however long each event takes.
type pace struct {
	next  time.Time
	every time.Duration
}

func newPace(every time.Duration) *pace { return &pace{time.Now(), every} }

// wait returns true when the next event is due, and false as soon as ctx ends.
func (p *pace) wait(ctx context.Context) bool {
	p.next = p.next.Add(p.every)
	// Timers are late by up to a millisecond: events that are due within one happen
	// together.
	if d := time.Until(p.next); d > time.Millisecond {
		return sleep(ctx, d)
	}
	return ctx.Err() == nil
}

// sleep waits for d, and returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	pause, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-pause.Done()
	return ctx.Err() == nil
}
