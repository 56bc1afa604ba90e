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
		{path: "/debug/pprof/cmdline", about: "command line of the process", serve: pprof.Cmdline},
		{path: "/debug/pprof/profile", about: "CPU profile for ?seconds=5, less than 10", waits: true, serve: pprof.Profile},
		{path: "/debug/pprof/trace", about: "execution trace for ?seconds=1, less than 10", waits: true, serve: pprof.Trace},
		{path: "/debug/pprof/symbol", about: "function names of program counters", methods: []string{"GET", "POST"}, serve: pprof.Symbol},
		{path: "/debug/pprof/{profile}", about: "named profile: goroutine, heap, mutex, ...", serve: pprof.Index},
	}
}
