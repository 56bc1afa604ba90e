package web

import (
	"os"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
)

// docs/http.md names each path, except the parts of the page, and each word of "degraded".
func TestEachPathAndTroubleIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, trouble := range node.Troubles() {
		if !strings.Contains(string(data), "`"+trouble+"`") {
			t.Errorf("docs/http.md does not name %s", trouble)
		}
	}
	names := strings.NewReplacer("{id}", "ID", "{name}", "NAME", "{key}", "KEY")
	for _, r := range New(whole(full())).routes() {
		path := names.Replace(r.path)
		if !strings.HasPrefix(path, "/page.") && !strings.Contains(string(data), "`"+path+"`") &&
			!strings.Contains(string(data), "`"+path+"?") {
			t.Errorf("docs/http.md does not name %s", path)
		}
	}
}
