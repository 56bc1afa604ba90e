package httpid_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/client/httpid"
	"github.com/flaked/flaked/ids/idstest"
)

// newIDs returns a source for tests. In production it is a client.Client.
func newIDs() *idstest.Source {
	ids := idstest.New()
	ids.SetNext("", 2123840319823806551)
	return ids
}

func Example() {
	ids := newIDs()

	// Every line that is logged with the request's context has the request's ID.
	log := slog.New(httpid.LogHandler(withoutTime(), ""))
	mux := http.NewServeMux()
	mux.HandleFunc("/orders", func(w http.ResponseWriter, r *http.Request) {
		log.InfoContext(r.Context(), "order taken", "items", 3)
		fmt.Fprintln(w, "thank you")
	})
	identify, err := httpid.New(httpid.Config{IDs: ids})
	if err != nil {
		fmt.Println(err)
		return
	}

	w := httptest.NewRecorder()
	identify(mux).ServeHTTP(w, httptest.NewRequest("POST", "/orders", nil))
	fmt.Println(w.Header().Get("X-Request-Id"))
	// Output:
	// level=INFO msg="order taken" items=3 request_id=2123840319823806551
	// 2123840319823806551
}

// hclog takes no context, so the handler makes a logger with the ID.
func Example_hclog() {
	ids := newIDs()

	log := hclog.New(&hclog.LoggerOptions{Name: "shop", Output: os.Stdout, DisableTime: true})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log := log.With("request_id", httpid.FromContext(r.Context()))
		log.Info("order taken", "items", 3)
	})
	identify, err := httpid.New(httpid.Config{IDs: ids})
	if err != nil {
		fmt.Println(err)
		return
	}
	identify(h).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/orders", nil))
	// Output:
	// [INFO]  shop: order taken: request_id=2123840319823806551 items=3
}

// Behind a proxy that gives requests an ID, keep the proxy's ID.
func ExampleConfig_trust() {
	ids := newIDs()

	identify, err := httpid.New(httpid.Config{IDs: ids, Trust: httpid.Always})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(httpid.FromContext(r.Context()))
	}))
	for _, came := range []string{"7f3a-from-the-proxy", "not an ID\n"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Request-Id", came)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// 7f3a-from-the-proxy
	// 2123840319823806551
}

func withoutTime() slog.Handler {
	return slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
}
