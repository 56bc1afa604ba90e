package lineproto

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/worker"
)

// command is a row of the command table.
type command struct {
	name string // upper case
	args string // as HELP shows them
	help string
	// text makes everything behind the verb of a plain request one argument, blanks
	// included.
	text bool
	// resp makes it a command of RESP alone. Redis clients send such commands to set up
	// a connection.
	resp     bool
	min, max int // number of arguments
	// inMulti says what happens to the command between MULTI and EXEC.
	inMulti inMulti
	// open allows the command to clients that have not authenticated yet.
	open bool
	// anyDB allows the command, as open does, to clients that have selected a wrong database.
	anyDB bool
	// inRESP replaces the row in RESP if the command means something else there.
	// Requests of both are counted under this row. nil means one row for both framings.
	inRESP *command
	// run is a method of session whose name begins with do, or comes from asks. It appends the reply to s.out, or
	// begins an order, or sets s.task. If it returns an error, it does none of this.
	run func(s *session, ctx context.Context, args [][]byte) *ids.ReplyError
}

// inMulti is what happens to a command between MULTI and EXEC.
type inMulti uint8

const (
	multiQueue   inMulti = iota // it waits for EXEC
	multiNow                    // it is executed at once
	multiRefused                // it is an error, and EXEC executes nothing
)

// anyNumber is a max that no request reaches: the framing and MaxBatch have lower
// limits.
const anyNumber = 1 << 20

// getIndex is the index of GET's row. Stretches of bare GETs are counted under it.
const getIndex = 0

// commandTable returns the command table in the order of HELP.
func commandTable() []command {
	return append([]command{
		getIndex: {name: "GET", args: "[n | tag]", max: 1, run: (*session).doGet,
			help: fmt.Sprintf("one ID, or n IDs (1 to %d). A tag is ignored", MaxBatch),
			inRESP: &command{name: "GET", args: "[key [COUNT n]]", max: 3, run: (*session).doGetKey,
				help: fmt.Sprintf("one ID for any key, or n IDs (1 to %d)", MaxBatch)}},
		{name: "MGET", args: "tag ...", min: 1, max: anyNumber, run: (*session).doMGet,
			help: "one ID for each tag, or one error",
			inRESP: &command{name: "MGET", args: "key ...", min: 1, max: anyNumber, run: (*session).doMGetKeys,
				help: "one ID for each key, or one error"}},
		{name: "NEXT", args: "name [n | key]", min: 1, max: 2, run: asks(seqNext),
			help: fmt.Sprintf("one value of a sequence, or n values (1 to %d). "+
				"A retry with the key gets the same value", MaxBatch)},
		{name: "RANGE", args: "name n", min: 2, max: 2, run: asks(seqRange),
			help: fmt.Sprintf("the first and the last of n consecutive values (1 to %d)", maxRange)},
		{name: "INCR", args: "name", min: 1, max: 1, run: asks(seqIncr),
			help: "one value of a sequence, in RESP as an integer"},
		{name: "INCRBY", args: "name n", min: 2, max: 2, run: asks(seqIncrBy),
			help: fmt.Sprintf("the last of n consecutive values (1 to %d), in RESP as an integer", maxRange)},
		{name: "SEQ", args: "name", min: 1, max: 1, run: asks(seqShow),
			help: "a sequence's settings and state"},
		{name: "SEQS", args: "[prefix]", max: 1, run: (*session).doSeqs,
			help: "the sequences that this node knows, then END"},
		{name: "DECODE", args: "id", min: 1, max: 1, run: (*session).doDecode,
			help: "an ID's time, datacenter, worker and sequence"},
		{name: "TIME", run: (*session).doTime,
			help: "the node's clock: Unix seconds and microseconds"},
		{name: "WORKER", args: "[cluster]", max: 1, run: (*session).doWorker,
			help: "this node's worker, term, node, state and cluster. An error if it belongs to another cluster"},
		{name: "STATS", run: (*session).doStats,
			help: "counters: a name and a value on each line, then END"},
		{name: "STATUS", args: "[peers]", max: 1, run: (*session).doStatus,
			help: "this node's state as JSON, in one line; with peers, the nodes that it has met, too"},
		{name: "READY", run: (*session).doReady,
			help: "OK if GET would be answered, and the node is not draining or waiting for named sequences. " +
				"Else the reason"},
		{name: "PING", args: "[text]", max: 1, text: true, run: (*session).doPing,
			help: "PONG, or the text"},
		{name: "HELP", open: true, run: (*session).doHelp,
			help: "this table, then END"},
		{name: "VERSION", run: (*session).doVersion,
			help: "flaked's release"},
		{name: "AUTH", args: "[user] token", min: 1, max: 2, open: true, inMulti: multiRefused,
			run:  (*session).doAuth,
			help: "OK for a good token, if the node asks for one; a user is ignored"},
		{name: "QUIT", open: true, inMulti: multiNow, run: (*session).doQuit,
			help: "closes the connection"},
		{name: "PASS", args: "name n cluster id term owner", min: passWords, max: passWords, run: asks(seqPass)},
	}, redisCommands()...)
}

// redisCommands returns the rows of the commands of RESP alone.
func redisCommands() []command {
	return []command{
		{name: "HELLO", args: "[2 | 3 [AUTH user token] [SETNAME name]]", max: 6, resp: true, open: true,
			inMulti: multiRefused, run: (*session).doHello},
		{name: "CLIENT", args: "subcommand ...", min: 1, max: anyNumber, resp: true, run: (*session).doClient},
		{name: "COMMAND", max: anyNumber, resp: true, run: (*session).doCommand},
		{name: "CONFIG", args: "GET name ...", min: 1, max: anyNumber, resp: true, run: (*session).doConfig},
		{name: "SELECT", args: "0", min: 1, max: 1, resp: true, anyDB: true, run: (*session).doSelect},
		{name: "ECHO", args: "text", min: 1, max: 1, resp: true, run: (*session).doEcho},
		{name: "INFO", args: "[section ...]", max: anyNumber, resp: true, run: (*session).doInfo},
		{name: "ROLE", resp: true, run: (*session).doRole},
		{name: "DBSIZE", resp: true, run: (*session).doDBSize},
		{name: "UNSUBSCRIBE", args: "[channel ...]", max: anyNumber, resp: true, inMulti: multiRefused,
			run: (*session).doUnsubscribe},
		{name: "RESET", resp: true, open: true, inMulti: multiNow, run: (*session).doReset},
		{name: "MULTI", resp: true, inMulti: multiNow, run: (*session).doMulti},
		{name: "EXEC", resp: true, inMulti: multiNow, run: (*session).doExec},
		{name: "DISCARD", resp: true, inMulti: multiNow, run: (*session).doDiscard},
	}
}

// helpLines returns the lines of HELP in a framing, without the END. Commands without a help
// text are left out, because no person types them.
func helpLines(table []command, resp bool) []string {
	var rows []*command
	wide := 0
	for i := range table {
		if c := table[i].in(resp); c.help != "" {
			rows = append(rows, c)
			wide = max(wide, len(c.usage()))
		}
	}
	var lines []string
	for _, c := range rows {
		lines = append(lines, fmt.Sprintf("%-*s  %s", wide, c.usage(), c.help))
	}
	return lines
}

// in returns the row that answers the command in a framing.
func (c *command) in(resp bool) *command {
	if resp && c.inRESP != nil {
		return c.inRESP
	}
	return c
}

func (c *command) usage() string { return strings.TrimSpace(c.name + " " + c.args) }

func (s *session) doGet(_ context.Context, args [][]byte) *ids.ReplyError {
	if len(args) == 0 {
		s.order = order{n: 1}
		return nil
	}
	switch arg := args[0]; {
	case isTag(arg):
		s.order = order{n: 1}
		return nil
	case len(bytes.Trim(arg, "0123456789+-.")) > 0:
		return errTag
	default:
		return s.getMany(arg)
	}
}

// getMany begins an order for as many IDs as count says.
func (s *session) getMany(count []byte) *ids.ReplyError {
	n, ok := number(count)
	if !ok || n > int64(MaxBatch) {
		return errCount
	}
	s.order = order{n: int(n), many: true}
	return nil
}

// doGetKey executes GET in RESP. Redis clients take its argument for a key and expect one
// value for it: a number there must not ask for a batch.
func (s *session) doGetKey(_ context.Context, args [][]byte) *ids.ReplyError {
	switch {
	case len(args) <= 1:
		s.order = order{n: 1}
		return nil
	case len(args) < 3 || !equalFold(args[1], "COUNT"):
		return errUsage(s.srv.table[getIndex].inRESP)
	}
	return s.getMany(args[2])
}

func (s *session) doMGet(ctx context.Context, keys [][]byte) *ids.ReplyError {
	for _, k := range keys {
		if !isTag(k) {
			return errTag
		}
	}
	return s.doMGetKeys(ctx, keys)
}

// doMGetKeys executes MGET in RESP, where any string is a key.
func (s *session) doMGetKeys(_ context.Context, keys [][]byte) *ids.ReplyError {
	if len(keys) > MaxBatch {
		return replies.New(ids.ERR, fmt.Sprintf("MGET takes 1 to %d keys", MaxBatch))
	}
	s.order = order{n: len(keys), many: true}
	return nil
}

func (s *session) doDecode(_ context.Context, args [][]byte) *ids.ReplyError {
	id, ok := number(args[0])
	if !ok {
		return replies.ErrNoID
	}
	text, err := s.srv.cfg.Backend.Decode(worker.ID(id))
	if err != nil {
		return replies.Of(err)
	}
	s.out = s.fr.text(s.out, text)
	return nil
}

func (s *session) doTime(context.Context, [][]byte) *ids.ReplyError {
	us := s.srv.cfg.Backend.Now().UnixMicro()
	s.out = s.fr.pair(s.out, us/1e6, us%1e6, "")
	return nil
}

// doWorker executes WORKER. A client that names another cluster than this node's is refused, and its connection ends:
// nothing that it has sent behind the request is executed.
func (s *session) doWorker(_ context.Context, args [][]byte) *ids.ReplyError {
	if len(args) > 0 {
		if e := s.inCluster(args[0]); e != nil {
			if e != errCluster {
				s.task = taskEnd
			}
			return e
		}
	}
	s.out = s.fr.text(s.out, s.workerLine())
	return nil
}

func (s *session) doStats(context.Context, [][]byte) *ids.ReplyError {
	s.fold() // counts this connection's too
	s.out = s.fr.stats(s.out, s.srv.cfg.Backend.Stats())
	return nil
}

func (s *session) doStatus(_ context.Context, args [][]byte) *ids.ReplyError {
	switch {
	case s.srv.cfg.Status == nil:
		return errUnknown([]byte("STATUS"))
	case len(args) > 0 && !bytes.EqualFold(args[0], []byte("peers")):
		return errStatusWord
	}
	s.fold() // as for STATS
	s.out = s.fr.text(s.out, s.srv.cfg.Status(len(args) > 0))
	return nil
}

func (s *session) doReady(context.Context, [][]byte) *ids.ReplyError {
	if err := s.srv.cfg.Backend.Ready(); err != nil {
		return replies.Of(err)
	}
	s.out = s.fr.status(s.out, "OK")
	return nil
}

func (s *session) doPing(_ context.Context, args [][]byte) *ids.ReplyError {
	if len(args) == 0 {
		s.out = s.fr.status(s.out, "PONG")
	} else {
		s.out = s.fr.text(s.out, string(args[0]))
	}
	return nil
}

func (s *session) doHelp(context.Context, [][]byte) *ids.ReplyError {
	lines := s.srv.help
	if s.inRESP() {
		lines = s.srv.helpRESP
	}
	s.out = s.fr.list(s.out, lines)
	return nil
}

func (s *session) doVersion(context.Context, [][]byte) *ids.ReplyError {
	s.out = s.fr.text(s.out, "flaked "+s.srv.cfg.Backend.Version())
	return nil
}

func (s *session) doQuit(context.Context, [][]byte) *ids.ReplyError {
	s.task = taskEnd
	s.out = s.fr.bye(s.out)
	return nil
}

func errUsage(c *command) *ids.ReplyError { return replies.New(ids.ERR, "usage: "+c.usage()) }

// errUnknown names the command, shortened and escaped, because it may hold any bytes.
func errUnknown(verb []byte) *ids.ReplyError {
	if bytes.HasPrefix(verb, []byte("\ufeff")) {
		return replies.New(ids.ERR, "the request begins with a byte order mark. Send it without one")
	}
	if len(verb) > 32 {
		verb = verb[:32]
	}
	return replies.New(ids.ERR, "unknown command "+strconv.QuoteToASCII(string(verb))+", HELP lists them")
}

var (
	errTag = replies.New(ids.ERR, fmt.Sprintf(
		"a tag must be a letter, then letters, digits and _ . : -, at most %d bytes", maxTag))
	errStatusWord = replies.New(ids.ERR, "STATUS takes nothing, or the word peers")
	errCount      = replies.New(ids.ERR, fmt.Sprintf("a count must be 1 to %d, digits only", MaxBatch))
	errCluster    = replies.New(ids.ERR, "a cluster is a name or a UUID: letters, digits and . _ -, at most 64")
)

// An address is not an identity: another node may listen there than the client thinks. So clients say which cluster
// they want (WORKER), and nodes which owner as well (PASS).

// inCluster returns nil if this node belongs to the cluster with this name or UUID, else the refusal.
func (s *session) inCluster(wanted []byte) *ids.ReplyError {
	if s.uuid != "" && string(wanted) == s.uuid {
		return nil
	}
	if dialog.CheckCluster(string(wanted)) != nil {
		return errCluster
	}
	var name string
	switch name, s.uuid = s.srv.cfg.Backend.Cluster(); {
	case s.uuid == "":
		return replies.ErrNoCluster
	case string(wanted) != name && string(wanted) != s.uuid:
		return replies.NotInCluster(name, s.uuid, string(wanted))
	}
	return nil
}

// workerLine returns the line of WORKER.
func (s *session) workerLine() string {
	name, uuid := s.srv.cfg.Backend.Cluster()
	return fmt.Sprintf("%s cluster=%s cluster_uuid=%s", s.srv.cfg.Backend.Worker(), name, cmp.Or(uuid, "none"))
}
