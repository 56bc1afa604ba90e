package lineproto

import (
	"context"
	"fmt"
	"slices"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// Commands of RESP alone, which Redis clients send to set up a connection. The replies
// let a client go on. Options that would change how the connection works are refused.

// identity holds the protocol version, the number and the name of a connection, as
// HELLO and CLIENT show them.
type identity struct {
	proto resp // 0 before HELLO means 2
	id    int64
	name  string
}

func (i *identity) framing() framing {
	if i.proto == 3 {
		return resp3
	}
	return resp2
}

// clientID returns the number of this connection. Connections get numbers from 1 on, in
// the order in which they ask.
func (s *session) clientID() int64 {
	if s.who.id == 0 {
		s.who.id = s.srv.lastClient.Add(1)
	}
	return s.who.id
}

// doHello does everything that it is asked for, or nothing.
func (s *session) doHello(_ context.Context, args [][]byte) *ids.ReplyError {
	who := s.who
	var token []byte
	if len(args) > 0 {
		switch string(args[0]) {
		case "2":
			who.proto = 2
		case "3":
			who.proto = 3
		default:
			return replies.New(ids.NOPROTO, "unsupported protocol version: flaked speaks 2 and 3")
		}
		args = args[1:]
	}
	for len(args) > 0 {
		switch {
		case equalFold(args[0], "AUTH") && len(args) >= 3:
			token, args = args[2], args[3:]
		case equalFold(args[0], "SETNAME") && len(args) >= 2:
			if !isClientName(args[1]) {
				return errClientName
			}
			who.name = string(args[1])
			args = args[2:]
		default:
			return replies.New(ids.ERR, "usage: HELLO [2 | 3 [AUTH user token] [SETNAME name]]")
		}
	}
	if token != nil {
		if e := s.auth(token); e != nil {
			return e
		}
	}
	if s.locked() {
		return errNoAuth
	}
	s.who = who
	s.fr = s.who.framing()
	r := s.fr.(resp)

	out := r.beginMap(s.out, 7)
	out = appendBulk(appendBulk(out, "server"), "flaked")
	out = appendBulk(appendBulk(out, "version"), redisVersion) // lettuce connects only if it can read this as a number
	out = appendHeader(appendBulk(out, "proto"), ':', int(r))
	out = appendHeader(appendBulk(out, "id"), ':', int(s.clientID()))
	out = appendBulk(appendBulk(out, "mode"), "standalone")
	out = appendBulk(appendBulk(out, "role"), "master")
	s.out = appendHeader(appendBulk(out, "modules"), '*', 0)
	return nil
}

// maxClientName is the most bytes of a client's name.
const maxClientName = 255

var errClientName = replies.New(ids.ERR, fmt.Sprintf(
	"a client's name is at most %d visible ASCII characters, without blanks", maxClientName))

func isClientName(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(b) <= maxClientName
}

func (s *session) doClient(_ context.Context, args [][]byte) *ids.ReplyError {
	r := s.fr.(resp)
	is := func(sub string, more int) bool { return len(args) == 1+more && equalFold(args[0], sub) }
	switch {
	case is("SETINFO", 2), is("NO-EVICT", 1), is("NO-TOUCH", 1):
		// Accepted without any effect.
	case is("REPLY", 1) && equalFold(args[1], "ON"):
	case len(args) >= 2 && equalFold(args[0], "TRACKING") && mayTrack(args[1:]):
		// No key changes, so there is nothing to tell the client.
	case is("SETNAME", 1):
		if !isClientName(args[1]) {
			return errClientName
		}
		s.who.name = string(args[1])
	case is("GETNAME", 0) && s.who.name == "":
		s.out = r.null(s.out)
		return nil
	case is("GETNAME", 0):
		s.out = r.text(s.out, s.who.name)
		return nil
	case is("ID", 0):
		s.out = appendHeader(s.out, ':', int(s.clientID()))
		return nil
	case is("INFO", 0), is("LIST", 0):
		// A connection sees only itself, in LIST too.
		s.out = r.list(s.out, []string{fmt.Sprintf("id=%d name=%s resp=%d", s.clientID(), s.who.name, r)})
		return nil
	default:
		return replies.New(ids.ERR, "CLIENT supports SETINFO, SETNAME, GETNAME, ID, INFO, LIST, "+
			"NO-EVICT, NO-TOUCH, REPLY ON, TRACKING ON OPTIN and TRACKING OFF")
	}
	s.out = r.status(s.out, "OK")
	return nil
}

// mayTrack reports whether a client may turn its cache of replies on or off so. With OPTIN the
// client caches a reply only if it has asked for that with CLIENT CACHING, which is refused. In every other
// way it might answer a GET from its cache, with an ID that it has had before.
func mayTrack(args [][]byte) bool {
	has := func(word string) bool {
		return slices.ContainsFunc(args[1:], func(a []byte) bool { return equalFold(a, word) })
	}
	return equalFold(args[0], "OFF") || equalFold(args[0], "ON") && has("OPTIN") && !has("BCAST") && !has("REDIRECT")
}

// doCommand answers that no command is known. Clients then send keys and arguments as
// they are.
func (s *session) doCommand(_ context.Context, args [][]byte) *ids.ReplyError {
	r := s.fr.(resp)
	switch {
	case len(args) > 1 && equalFold(args[0], "INFO"):
		s.out = appendHeader(s.out, '*', len(args)-1)
		for range args[1:] {
			s.out = r.nullArray(s.out)
		}
	case len(args) == 0 || equalFold(args[0], "INFO") || equalFold(args[0], "LIST"):
		s.out = appendHeader(s.out, '*', 0)
	case equalFold(args[0], "DOCS"):
		s.out = r.beginMap(s.out, 0)
	case equalFold(args[0], "COUNT"):
		s.out = appendHeader(s.out, ':', 0)
	default:
		return replies.New(ids.ERR, "COMMAND supports COUNT, DOCS, INFO and LIST")
	}
	return nil
}

func (s *session) doConfig(_ context.Context, args [][]byte) *ids.ReplyError {
	if len(args) < 2 || !equalFold(args[0], "GET") {
		return replies.New(ids.ERR, "CONFIG supports only GET, which returns nothing")
	}
	s.out = s.fr.(resp).beginMap(s.out, 0)
	return nil
}

var errDB = replies.New(ids.ERR, "SELECT supports only database 0. Correct the client's database, and keep the "+
	"counters of several databases apart by names such as db2:order")

// doSelect refuses all databases but 0. Some clients ignore the refusal and go on, so after it
// other requests get the same error until SELECT 0.
func (s *session) doSelect(_ context.Context, args [][]byte) *ids.ReplyError {
	if s.wrongDB = string(args[0]) != "0"; s.wrongDB {
		return errDB
	}
	s.out = s.fr.status(s.out, "OK")
	return nil
}

func (s *session) doEcho(_ context.Context, args [][]byte) *ids.ReplyError {
	s.out = s.fr.text(s.out, string(args[0]))
	return nil
}

func (s *session) doDBSize(context.Context, [][]byte) *ids.ReplyError {
	s.out = appendHeader(s.out, ':', 0)
	return nil
}

// doUnsubscribe answers as for a client that has subscribed to nothing.
func (s *session) doUnsubscribe(_ context.Context, channels [][]byte) *ids.ReplyError {
	r, kind := s.fr.(resp), byte('*')
	if r == 3 {
		kind = '>'
	}
	if len(channels) == 0 {
		channels = [][]byte{nil}
	}
	for _, channel := range channels {
		out := appendBulk(appendHeader(s.out, kind, 3), "unsubscribe")
		if channel == nil {
			out = r.null(out)
		} else {
			out = appendBulk(out, string(channel))
		}
		s.out = appendHeader(out, ':', 0)
	}
	return nil
}

// doReset makes the connection as it was at its beginning.
func (s *session) doReset(context.Context, [][]byte) *ids.ReplyError {
	s.who.proto, s.who.name = 0, ""
	s.multi, s.authed, s.rights, s.wrongDB = nil, false, nil, false
	s.fr = s.who.framing()
	s.out = s.fr.status(s.out, "RESET")
	return nil
}

// redisInline reports whether a plain request is one that Redis clients send so, and read the reply
// of which in RESP: SELECT, and AUTH with the token in quotes (eredis).
func redisInline(verb, rest []byte) bool {
	return equalFold(verb, "SELECT") || equalFold(verb, "AUTH") && len(rest) > 0 && rest[0] == '"'
}
