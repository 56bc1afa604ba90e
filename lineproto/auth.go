package lineproto

import "context"

// maxWrong is how many wrong tokens a connection may bring: a client that has
// an old one and a new one gets in, one that guesses has to connect anew.
const maxWrong = 3

var (
	errNoAuth    = &Error{NOAUTH, "authenticate first, with AUTH and a token"}
	errWrong     = &Error{NOAUTH, "wrong token"}
	errLastWrong = &Error{NOAUTH, "wrong token, and the last try on this connection"}
)

// locked reports whether the client has yet to authenticate.
func (s *session) locked() bool { return !s.authed && s.srv.cfg.Authenticate != nil }

// auth checks a token, whatever the request it came in. A wrong one takes
// nothing from a connection that has brought a good one, but counts.
func (s *session) auth(token []byte) *Error {
	switch check := s.srv.cfg.Authenticate; {
	case check == nil:
		return nil
	case check(token):
		s.authed = true
		return nil
	}
	if s.wrong++; s.wrong == maxWrong {
		s.closing = true
		return errLastWrong
	}
	return errWrong
}

func (s *session) authenticate(_ context.Context, args [][]byte) *Error {
	if e := s.auth(args[len(args)-1]); e != nil {
		return e
	}
	s.out = s.fr.status(s.out, "OK")
	return nil
}
