package web

import (
	"context"
	"net/http"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/sequence"
)

// rightsKey is the key of a request's rights in its context.
type rightsKey struct{}

// withRights returns the request with the rights of its token.
func withRights(r *http.Request, rights *sequence.Rights) *http.Request {
	if rights == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), rightsKey{}, rights))
}

// rightsOf returns the sequences that a request may use. nil means all of them.
func rightsOf(r *http.Request) *sequence.Rights {
	rights, _ := r.Context().Value(rightsKey{}).(*sequence.Rights)
	return rights
}

// mayUse returns an error if the request's token does not include a sequence. A handler must
// call it before it asks for the sequence, because the error must not depend on whether the
// sequence exists.
func mayUse(r *http.Request, name string) error {
	if rightsOf(r).MayUse([]byte(name)) {
		return nil
	}
	return replies.NoRight(name)
}
