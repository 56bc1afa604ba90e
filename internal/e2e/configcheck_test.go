package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// `config check` refuses the settings that `serve` refuses. It opens no port and writes nothing, so it
// works while the address is in use.
func TestConfigCheckPredictsServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	state := filepath.Join(dir, "state")
	file := filepath.Join(dir, "flaked.yaml")
	write := func(more string) {
		t.Helper()
		text := fmt.Sprintf("zk: 127.0.0.1:1\nlisten: %s\nstate-dir: %s\n%s", taken.Addr(), state, more)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flaked := shipped.binary(t)
	for _, row := range []struct {
		name, more string
		code       int
		want       string
	}{
		{"good", "", 0, "state-dir"},
		{"heartbeat", "heartbeat: 1ms\n", 2, "heartbeat interval 1ms is too short"},
		{"unknown", "listne: x\n", 2, "line 4: listne: "},
		{"workers", "workers: 0\n", 2, "--workers must be 1 to 64, not 0"},
		{"token file", "token-file: " + dir + "\n", 2, "--token-file"},
	} {
		write(row.more)
		execute(t, flaked, "config", "check", "--config", file).wants(t, row.code, row.want)
		if row.code != 0 {
			execute(t, flaked, "serve", "--config", file, "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(t.TempDir(), "new")).wants(t, row.code, row.want)
		}
	}
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("the state directory was created: %v", err)
	}
}
