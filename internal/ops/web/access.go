package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/sequence"
)

// admit returns a request that may use a route that is not open to everybody: the same one,
// with the rights of its token. If it may not, admit answers it and returns nil. If linked is
// set, a browser may open the route from a link on another site's page.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, linked bool) *http.Request {
	switch {
	case fromAnotherSite(r) && !(linked && opensPage(r)):
		// The other site's page could not read the answer, but its requests would use up IDs.
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "request from another site's page refused. Enter this address in a tab of its own, "+
			"or use a program.\n")
		return nil
	case !s.certified(r):
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "client certificate missing. Connect with one of an authority that the node trusts "+
			"(curl --cert FILE --key FILE).\n")
		return nil
	case s.cfg.Authenticate != nil:
		if rights, ok := s.cfg.Authenticate([]byte(token(r))); ok {
			return withRights(r, rights)
		}
		// A browser cannot ask its user for a bearer token, only for a password.
		w.Header().Add("WWW-Authenticate", `Basic realm="flaked: any user name, a token as password", charset="UTF-8"`)
		w.Header().Add("WWW-Authenticate", `Bearer realm="flaked"`)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "token missing or wrong. Send one of the node's tokens as Authorization: Bearer "+
			"TOKEN, or as the password.\n")
		return nil
	case s.cfg.Loopback && !loopbackHost(r.Host):
		// DNS rebinding: another site can point its name at 127.0.0.1. Its page would then
		// count as this origin in the browser.
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "only this machine may use this address, by a loopback name. Use localhost or "+
			"127.0.0.1. For other machines, the node needs tokens.\n")
		return nil
	case s.cfg.Closed != "":
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, s.cfg.Closed+"\n")
		return nil
	}
	return r
}

// fromAnotherSite reports whether a browser sends the request for a page of another
// origin. Programs send neither of these headers, so they always pass.
func fromAnotherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // this server's page, or an address that was typed
		return false
	case "": // browsers leave it out on plain HTTP that is not on loopback
		origin := r.Header.Get("Origin")
		if origin == "" {
			return false
		}
		from, err := url.Parse(origin)
		return err != nil || from.Host != r.Host
	}
	return true
}

// opensPage reports whether a browser would show the answer in a tab.
func opensPage(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// loopbackHost reports whether a Host header is empty, localhost or a loopback address.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip, err := netip.ParseAddr(host)
	return host == "" || strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// token returns the bearer token or the password of a request, or "" if it has neither.
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

// certified reports whether a request may use routes that are not open to everybody, as far as
// its client certificate is concerned.
func (s *Server) certified(r *http.Request) bool {
	return !s.cfg.ClientCertificate || r.TLS != nil && len(r.TLS.VerifiedChains) > 0
}

// rightsKey is the key of a request's rights in its context.
type rightsKey struct{}

// withRights returns the request with the rights of its token.
func withRights(r *http.Request, rights *sequence.Rights) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), rightsKey{}, rights))
}

// mayUse returns an error if the request's token does not include a sequence. A handler must
// call it before it asks for the sequence, because the error must not depend on whether the
// sequence exists.
func mayUse(r *http.Request, name string) error {
	rights, _ := r.Context().Value(rightsKey{}).(*sequence.Rights)
	if rights.MayUse([]byte(name)) { // nil may use all
		return nil
	}
	return replies.NoRight(name)
}
