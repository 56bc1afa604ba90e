package admin

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// admit reports whether a request may have what is not for everybody, and
// answers it if it may not. linked: another site's page may lead a browser there.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, linked bool) bool {
	switch {
	case fromAnotherSite(r) && !(linked && opensPage(r)):
		// The other site's page could not read the answer, but it would use up IDs.
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "another site's page asks for this: open it in a tab of its own, or ask with a program\n")
		return false
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

// fromAnotherSite reports whether a browser says that a page of another origin
// asks. A program says nothing of the kind.
func fromAnotherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // this server's page, or an address that was typed
		return false
	case "": // browsers leave it out on plain HTTP that is not on loopback
		origin := r.Header.Get("Origin")
		from, err := url.Parse(origin)
		return origin != "" && (err != nil || from.Host != r.Host)
	}
	return true
}

// opensPage reports whether a browser asks in order to show the answer in a tab.
func opensPage(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
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
