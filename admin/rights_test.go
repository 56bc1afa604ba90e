package admin

import (
	"net/http/httptest"
	"testing"

	"github.com/flaked/flaked/sequence"
)

// A handler gets the rights of the request's token, by either way to send one.
func TestHandlersGetTheRightsOfTheToken(t *testing.T) {
	rights, err := sequence.ParseRights("order:*")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: Config{Authenticate: func(token []byte) (*sequence.Rights, bool) {
		if string(token) == "some" {
			return rights, true
		}
		return nil, string(token) == "all"
	}}}
	for _, row := range []struct {
		token, name, problem string
		code                 int
	}{
		{"all", "user", "", 200},
		{"some", "order:1", "", 200},
		{"some", "order", `{"error":{"code":"NOPERM","text":"reason=no-right this token may not use sequence order"}}` + "\n", 403},
		{"some", "user", `{"error":{"code":"NOPERM","text":"reason=no-right this token may not use sequence user"}}` + "\n", 403},
	} {
		for _, basic := range []bool{false, true} {
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			if r.Header.Set("Authorization", "Bearer "+row.token); basic {
				r.SetBasicAuth("anybody", row.token)
			}
			if r = s.admit(w, r, false); r == nil {
				t.Fatalf("%s: the token is refused", row.token)
			}
			if err := mayUse(r, row.name); err != nil {
				writeError(w, err)
			}
			if body := w.Body.String(); w.Code != row.code || body != row.problem {
				t.Errorf("%s for %s: %d %q", row.token, row.name, w.Code, body)
			}
		}
	}
}
