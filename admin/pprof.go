package admin

import (
	"net/http/pprof"
)

func (s *Server) pprofRoutes() []route {
	if !s.cfg.Pprof {
		return nil
	}
	return []route{
		{path: "/debug/pprof/", about: "profiles of the process, for go tool pprof", serve: pprof.Index},
		{path: "/debug/pprof/cmdline", about: "its command line", serve: pprof.Cmdline},
		{path: "/debug/pprof/profile", about: "its CPU for ?seconds=5, or less than 10", waits: true, serve: pprof.Profile},
		{path: "/debug/pprof/trace", about: "its execution for ?seconds=1, or less than 10", waits: true, serve: pprof.Trace},
		{path: "/debug/pprof/symbol", about: "names of program counters", methods: []string{"GET", "POST"}, serve: pprof.Symbol},
		{path: "/debug/pprof/{profile}", about: "one of them: goroutine, heap, mutex, ...", serve: pprof.Index},
	}
}
