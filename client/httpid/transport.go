package httpid

import (
	"cmp"
	"net/http"
)

// Transport sends the ID of the request that is being served along with those
// that it causes: for http.Client.Transport. The other side has to trust it.
type Transport struct {
	// Base sends them. nil means http.DefaultTransport.
	Base http.RoundTripper
	// Header is the name of the header. Empty means X-Request-Id.
	Header string
}

// RoundTrip adds the ID of the request's context, if it has one and the header
// has not been set.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	header := cmp.Or(t.Header, DefaultHeader)
	if id := FromContext(r.Context()); id != "" && r.Header.Get(header) == "" {
		r = r.Clone(r.Context())
		r.Header.Set(header, id)
	}
	return base.RoundTrip(r)
}
