package lineproto

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Backend call may block a driver for a tick, and a tick may be long. The watcher then gives
// the loop another driver, and the connection of the call is away until the call returns.

const (
	// lookEvery is the time between two looks of the watcher. A driver that is in the
	// same call at two looks loses its loop. Shorter waits hold up all connections of
	// the loop: the 5 ms of the rollback rule, and the rest of a tick of a millisecond.
	lookEvery = 6 * time.Millisecond
	// lookOften is the time between two looks while a connection is away. Calls then
	// take long, and each would hold up the others for lookEvery.
	lookOften = time.Millisecond
	// The watcher sleeps after more than looksIdle looks without any call.
	looksIdle = 20
)

// watch gives the loop another driver when a Backend call blocks its driver, until stop is
// closed.
func (l *loop) watch(stop <-chan struct{}, calls context.Context, wg *sync.WaitGroup) {
	if l == nil {
		return
	}
	var seen uint64
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for idle := 1; ; idle++ {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		turn := l.turn.Load()
		if turn != seen {
			idle = 0
		} else if turn&1 != 0 {
			idle = 0
			l.relieve(turn, calls, wg)
		}
		seen = turn
		if idle > looksIdle {
			if !l.awaitCall(stop, seen) {
				return
			}
			idle = 0
		}
		next := lookEvery
		if l.away.Load() > 0 {
			next = lookOften
		}
		timer.Reset(next)
	}
}

// awaitCall sleeps until a driver begins a call after turn seen. It returns false when stop is
// closed.
func (l *loop) awaitCall(stop <-chan struct{}, seen uint64) bool {
	l.asleep.Store(true)
	// A call that began before asleep was set did not wake the watcher.
	if l.turn.Load() != seen && l.asleep.Swap(false) {
		return true
	}
	select {
	case <-stop:
		return false
	case <-l.wakeWatcher:
		return true
	}
}

// begun wakes the watcher if it sleeps. The driver must call it at the beginning of
// each call, after it has made turn odd.
func (l *loop) begun() {
	if l.asleep.Load() && l.asleep.Swap(false) {
		l.wakeWatcher <- struct{}{}
	}
}

// relieve takes the loop from a driver that is still in the call that turn stands for,
// and starts another driver.
func (l *loop) relieve(turn uint64, calls context.Context, wg *sync.WaitGroup) {
	wg.Add(1) // before the driver can end: drain waits for wg to be zero
	if !l.turn.CompareAndSwap(turn, turn+1) {
		wg.Done()
		return
	}
	c := l.current
	c.state = connAway
	if c.large {
		l.held = c
	}
	l.away.Add(1)
	l.control(unix.EPOLL_CTL_DEL, c.fd, 0, 0) // HUP cannot be masked
	go func() {
		defer wg.Done()
		newDriver(l).run(calls)
	}()
}

// serves returns the first rank that gets no turns. Where ticks are long, the
// connection that waits for one is away. If it has a large order, other large orders
// get no turns. Of several that are away, the first to wake would take the whole tick.
func (l *loop) serves() rank {
	//mutant:w-long-ticks by TestOneLargeOrderWaits -> if false {
	if l.held != nil {
		return large
	}
	return numRanks
}
