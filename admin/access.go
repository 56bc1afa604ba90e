package admin

import (
	"io"
	"net"
	"net/http"
	"strings"
)

// admit tells whether a request may have what is not for everybody, and
// answers it if it may not.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case s.cfg.Authenticate != nil:
		if s.cfg.Authenticate([]byte(token(r))) {
			return true
		}
		// A browser asks for what it knows how to: a password.
		w.Header().Add("WWW-Authenticate", `Basic realm="flaked: any user, a token for password", charset="UTF-8"`)
		w.Header().Add("WWW-Authenticate", `Bearer realm="flaked"`)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "this takes one of the node's tokens: as Authorization: Bearer TOKEN, or as a password\n")
		return false
	case s.cfg.Loopback && !loopbackHost(r.Host):
		// A page of another site whose name has come to mean this machine would
		// have its reader's browser ask here.
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "this is for this machine alone: ask for it as localhost or 127.0.0.1, or give the node tokens (--token-file FILE)\n")
		return false
	case s.cfg.Closed != "":
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, s.cfg.Closed+"\n")
		return false
	}
	return true
}

// loopbackHost tells whether a request is for this machine by name.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "" || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// token is what a request brings; empty if nothing.
func token(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
