package lineproto

// measureEvery is how many connections share one measured duration. Reading a clock
// costs a hundredth of answering a request.
const measureEvery = 4

// took measures the requests of a connection that have just been answered.
func (l *loop) took(c *loopConn) {
	srv := l.e.srv
	n := c.s.counts.untimed
	if n == 0 || !srv.cfg.Measure {
		return
	}
	c.s.counts.untimed = 0
	if c.began != l.woke { // in an earlier round
		l.times.add(&srv.counters.durations, srv.elapsed()-c.began, n)
		return
	}
	l.unmeasured += n
	if l.answered++; l.answered%measureEvery == 0 {
		l.times.add(&srv.counters.durations, srv.elapsed()-l.woke, l.unmeasured)
		l.unmeasured = 0
	}
}

// measure ends a round of measuring and adds its durations to the server's.
func (l *loop) measure() {
	srv := l.e.srv
	if l.unmeasured > 0 {
		l.times.add(&srv.counters.durations, srv.elapsed()-l.woke, l.unmeasured)
	}
	l.unmeasured, l.answered = 0, 0
	l.times.fold(&srv.counters.durations)
}
