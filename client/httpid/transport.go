package httpid

import (
	"cmp"
	"net/http"
)

// Transport adds the ID of the request that is being served to the requests that it causes.
// Use it as http.Client.Transport. The other server must trust the ID: see Config.Trust.
type Transport struct {
	// Base sends the requests. nil means http.DefaultTransport.
	Base http.RoundTripper
	// Header is the name of the header. Empty means X-Request-Id.
	Header string
}

// RoundTrip adds the ID of the request's context to the header, unless the context has none
// or the header is already set.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	header := cmp.Or(t.Header, defaultHeader)
	if id := FromContext(r.Context()); id != "" && r.Header.Get(header) == "" {
		r = r.Clone(r.Context())
		r.Header.Set(header, id)
	}
	return cmp.Or(t.Base, http.DefaultTransport).RoundTrip(r)
}
