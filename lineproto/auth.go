package lineproto

import (
	"context"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// maxWrong is the number of wrong tokens that closes a connection. A client that tries
// an old token and then the new one gets in. A client that guesses must reconnect after
// three.
const maxWrong = 3

var (
	errNoAuth    = replies.New(ids.NOAUTH, "this node needs a token. Send AUTH [user] token")
	errWrong     = replies.New(ids.WRONGPASS, "wrong token")
	errLastWrong = replies.New(ids.WRONGPASS, "wrong token, connection closed. Reconnect to try again")
)

// locked reports whether the client must still authenticate.
func (s *session) locked() bool { return !s.authed && s.srv.cfg.Authenticate != nil }

// auth checks the token of an AUTH or a HELLO. A wrong token takes nothing from a
// connection that has sent a valid one, but counts towards maxWrong.
func (s *session) auth(token []byte) *ids.ReplyError {
	check := s.srv.cfg.Authenticate
	if check == nil {
		return nil
	}
	if rights, ok := check(token); ok {
		s.authed, s.rights = true, rights
		return nil
	}
	if s.wrong++; s.wrong == maxWrong {
		s.task = taskEnd
		return errLastWrong
	}
	return errWrong
}

func (s *session) doAuth(_ context.Context, args [][]byte) *ids.ReplyError {
	token := args[len(args)-1]
	if n := len(token); n >= 2 && token[0] == '"' && token[n-1] == '"' {
		token = token[1 : n-1] // see redisInline
	}
	if e := s.auth(token); e != nil {
		return e
	}
	s.out = s.fr.status(s.out, "OK")
	return nil
}
