package lineproto

// measureEvery is how many connections share one measured duration. Reading a clock
// costs a hundredth of answering a request.
const measureEvery = 4

// took measures the requests of a connection that have just been answered.
func (d *driver) took(c *loopConn) {
	srv := d.l.e.srv
	n := c.s.counts.untimed
	if n == 0 || !srv.cfg.Measure {
		return
	}
	c.s.counts.untimed = 0
	if c.began != d.woke { // in an earlier round
		d.times.add(&srv.counters.durations, srv.elapsed()-c.began, n)
		return
	}
	d.unmeasured += n
	if d.answered++; d.answered%measureEvery == 0 {
		d.times.add(&srv.counters.durations, srv.elapsed()-d.woke, d.unmeasured)
		d.unmeasured = 0
	}
}

// measure ends a round of measuring and adds its durations to the server's.
func (d *driver) measure() {
	srv := d.l.e.srv
	if d.unmeasured > 0 {
		d.times.add(&srv.counters.durations, srv.elapsed()-d.woke, d.unmeasured)
	}
	d.unmeasured, d.answered = 0, 0
	d.times.fold(&srv.counters.durations)
}
