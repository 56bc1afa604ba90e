package lineproto

import "github.com/flaked/flaked/internal/ops/host/rawsocket"

// closedInARound is how many connections a sweep closes before the loop goes on. A
// connection with replies that its client has not read takes 40 us to close.
const closedInARound = 8

// beginSweep makes sweep look at all connections. While the server is crowded, it also reports those that may
// have to make room.
func (l *loop) beginSweep(toEnd *surplus) {
	l.swept, l.toEnd = 0, toEnd
	if toEnd == nil {
		return
	}
	var idle []int64
	for _, c := range l.conns {
		if c != nil && c.state == connReading && l.srv.sweeper.mayEnd(c.due) {
			idle = append(idle, c.due)
		}
	}
	l.listener.report(idle)
}

// sweep closes connections that are past their due tick, and those that must make room, beginning
// with descriptor l.swept. The next call goes on where this one stops.
func (l *loop) sweep() {
	now, counters := l.srv.sweeper.tick.Load(), &l.srv.counters
	for closed := 0; l.swept < len(l.conns) && closed < closedInARound; l.swept++ {
		c := l.conns[l.swept]
		if c == nil || c.due >= unlimited && c.state != connReading || !l.toEnd.takeIfDue(c.due, now) {
			continue
		}
		switch c.state {
		case connReading:
			counters.idle.Add(1)
		case connWriting:
			counters.slow.Add(1)
		case connLingering:
		default:
			continue
		}
		l.close(c)
		closed++
	}
}

// drain ends connections as the stage demands.
func (l *loop) drain() {
	if l.stage < stageEnding {
		return
	}
	for _, c := range l.conns {
		switch {
		case c == nil:
		case l.stage == stageCutting:
			l.listener.cut.Add(1)
			l.close(c)
		case c.state == connReading && rawsocket.Pending(c.fd):
			// The input that has arrived is read and answered before the end. A close
			// would reset the connection.
		case c.state == connReading && c.late:
			// The client was active within drainGrace and may have sent more by now. A
			// client that was idle all that time has not, and is closed below.
			l.linger(c)
		case c.state == connReading, c.state == connLingering && l.stage == stageEnding:
			l.close(c)
		case c.state == connSleeping && l.stage == stageWaitless:
			c.s.stopWaiting()
			l.goOn(c)
		}
	}
}
