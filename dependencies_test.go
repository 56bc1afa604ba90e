package flaked

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A program that imports the package links these packages of flaked and these libraries of others, and no
// more: nothing that only a server needs (lineproto, internal/ops/health), and no commands of people (seq/operator). A
// client links none of ZooKeeper's.
func TestDependencies(t *testing.T) {
	const own = "github.com/flaked/flaked"
	list := func(pkg string) (linked []string) {
		cmd := exec.Command("go", "list", "-deps", "-f",
			"{{with .Module}}{{if .Main}}{{$.ImportPath}}{{else}}{{.Path}}{{end}}{{end}}", pkg)
		cmd.Env = append(os.Environ(), "GOOS=linux")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
		for _, path := range strings.Fields(string(out)) {
			if path != own {
				linked = append(linked, strings.TrimPrefix(path, own+"/"))
			}
		}
		slices.Sort(linked)
		return slices.Compact(linked)
	}
	for pkg, want := range map[string]string{
		".": "coordinator " +
			"github.com/cenkalti/backoff/v5 github.com/dchest/siphash github.com/fatih/color github.com/go-zookeeper/zk " +
			"github.com/google/uuid github.com/hashicorp/go-hclog github.com/mattn/go-colorable " +
			"github.com/mattn/go-isatty " +
			"go.uber.org/atomic golang.org/x/sync golang.org/x/sys " +
			"ids internal/app internal/core/entrylog internal/core/limits internal/core/node internal/core/positions internal/core/pulse internal/core/replies internal/core/seq " +
			"internal/core/seq/losses internal/core/seq/mode internal/core/seq/ordered internal/core/seq/ordered/peer internal/core/seq/record internal/core/seq/strict " +
			"internal/core/store internal/dialog " +
			"internal/ops/host/logqueue localcache sequence timeguard worker",
		"./client": "client github.com/cenkalti/backoff/v5 github.com/dchest/siphash go.uber.org/atomic golang.org/x/sys ids " +
			"internal/core/positions internal/core/replies internal/dialog sequence worker",
		"./ids": "golang.org/x/sys ids worker",
	} {
		if got := strings.Join(list(pkg), " "); got != want {
			t.Errorf("%s has %s, want %s", pkg, got, want)
		}
	}
}
