package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// exits ends a process whose node has returned an error.
func (s *sim) exits(p *process, err error) {
	s.note("%s: exits: %v", p.name, err)
	p.failed = err
	_ = p.session.Close()
	s.ends(p)
}

func (s *sim) ends(p *process) {
	p.dead, p.ended = true, s.now
	p.machine.proc = nil
}

// kill ends a process as kill -9 does. With power, the machine crashes: its disk may lose what was not synced.
func (s *sim) kill(p *process, power bool) {
	s.note("%s: killed, power cut %t", p.name, power)
	s.sessions = append(s.sessions, p.session)
	s.killed(p)
	p.killed = true
	s.ends(p)
	if power {
		p.machine.Crash(s.upTo(20 * s.heartbeat)) // its boot clock may pass times of the boot before
	}
}

// stop stops a process cleanly.
func (s *sim) stop(p *process) {
	if p.keeping || p.extending || p.saving || p.acquiring || s.now < p.paused {
		return // Run stops the loops first
	}
	p.stopping = true
	s.within(p, &p.keeping, func() {
		var ctx context.Context
		ctx, p.giveUp = context.WithTimeout(context.Background(), p.n.stopTime())
		p.patience = s.between(3, 15)
		if s.calm {
			p.patience = 50
		}
		s.note("%s: stops, gives its worker back %t", p.name, p.n.cfg.ReleaseOnExit)
		p.n.keeper.stop(ctx)
		p.giveUp()
		s.note("%s: stopped", p.name)
		_ = p.session.Close()
		s.ends(p)
	})
}

// writes returns a function that reports whether a call writes the record of worker w. A w of -1 means any worker.
func writes(w int) func(memzk.Call) bool {
	path := "/workers/"
	if w >= 0 {
		path = slotPath(w)
	}
	return func(c memzk.Call) bool {
		for _, op := range c.Ops {
			if set, ok := op.(store.SetOp); ok && strings.HasPrefix(set.Path, path) {
				return true
			}
		}
		return c.Write() && c.Ops == nil && strings.HasPrefix(c.Path, path)
	}
}

func slotPath(w int) string { return fmt.Sprintf("/workers/%04d", w) }
