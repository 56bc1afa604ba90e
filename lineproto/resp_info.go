package lineproto

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/flaked/flaked/ids"
)

// redisVersion is the release of Redis whose requests and replies flaked speaks: RESP3, and the set-up of connections
// down to CLIENT SETINFO. Programs that are told no version take the server for ill, or for one of another kind.
const redisVersion = "7.2.0"

// infoSections are the sections of INFO, in order. Each has the fields that health checks and exporters read of a
// Redis server, as far as flaked has such a thing, and what flaked shows of itself.
var infoSections = []struct {
	title string
	lines func(s *session) []string
}{
	{"Server", (*session).infoServer},
	{"Clients", func(s *session) []string {
		return []string{
			fmt.Sprintf("connected_clients:%d", s.srv.counters.open.Load()),
			fmt.Sprintf("maxclients:%d", s.srv.cfg.MaxConns),
			"blocked_clients:0",
		}
	}},
	{"Memory", func(*session) []string { return []string{fmt.Sprintf("used_memory:%d", usedMemory())} }},
	{"Stats", (*session).infoStats},
	{"Replication", func(*session) []string { return []string{"role:master", "connected_slaves:0"} }},
}

// doInfo executes INFO.
func (s *session) doInfo(_ context.Context, args [][]byte) *ids.ReplyError {
	wants := func(title string) bool {
		return len(args) == 0 || slices.ContainsFunc(args, func(a []byte) bool {
			return equalFold(a, strings.ToUpper(title)) ||
				equalFold(a, "ALL") || equalFold(a, "DEFAULT") || equalFold(a, "EVERYTHING")
		})
	}
	var lines []string
	for _, section := range infoSections {
		if !wants(section.title) {
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(append(lines, "# "+section.title), section.lines(s)...)
	}
	s.out = s.fr.list(s.out, lines)
	return nil
}

// infoServer returns what the node and its process are, with the fields of WORKER.
func (s *session) infoServer() []string {
	up := s.srv.elapsed() / 1e9
	lines := []string{
		"redis_version:" + redisVersion, "redis_mode:standalone", "flaked_version:" + s.srv.cfg.Backend.Version(),
		"os:" + runtime.GOOS + " " + runtime.GOARCH, fmt.Sprintf("process_id:%d", os.Getpid()),
		fmt.Sprintf("tcp_port:%d", s.srv.tcpPort.Load()),
		fmt.Sprintf("uptime_in_seconds:%d", up), fmt.Sprintf("uptime_in_days:%d", up/(24*60*60)),
	}
	for field := range strings.FieldsSeq(s.workerLine()) {
		if name, value, ok := strings.Cut(field, "="); ok {
			lines = append(lines, name+":"+value)
		}
	}
	return lines
}

// infoStats returns the counts that Redis has, and the lines of STATS.
func (s *session) infoStats() []string {
	s.fold() // as for STATS
	var requests int64
	for i := range s.srv.counters.requests {
		for r := range s.srv.counters.requests[i] {
			requests += s.srv.counters.requests[i][r].Load()
		}
	}
	lines := []string{
		fmt.Sprintf("total_connections_received:%d", s.srv.counters.total.Load()),
		fmt.Sprintf("total_commands_processed:%d", requests),
		fmt.Sprintf("rejected_connections:%d", s.srv.counters.refused.Load()),
	}
	return statLines(lines, s.srv.cfg.Backend.Stats())
}

// usedMemory returns the bytes of memory that the process holds, as Go's runtime counts them.
func usedMemory() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// doRole says what a Redis server without replicas says.
func (s *session) doRole(context.Context, [][]byte) *ids.ReplyError {
	out := appendBulk(appendHeader(s.out, '*', 3), "master")
	s.out = appendHeader(appendHeader(out, ':', 0), '*', 0)
	return nil
}
