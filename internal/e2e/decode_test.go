package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// decoded has the fields of `flaked decode -o json` that the test uses.
type decoded struct {
	TimestampMs int64  `json:"timestamp_ms"`
	Worker      int    `json:"worker"`
	Layout      string `json:"layout"`
	LayoutFrom  string `json:"layout_from"`
	Warning     string `json:"warning"`
}

// In an earlier version, `flaked decode` always assumed the default layout. For an ID of a
// cluster with another layout it printed the year 2015 and worker 208, with exit code 0.
func TestDecodeKnowsTheClustersLayout(t *testing.T) {
	t.Parallel()
	ens := zktest.Single(t)
	s := newSite(t, zktest.Chroot(t, ens))
	s.ids.layout = worker.Sonyflake()
	s.started("--layout", "sonyflake").ready()
	n := s.started("--layout", "sonyflake").ready() // a worker other than 0
	_, addr, _ := n.address()
	began := s.ids.now()
	r := execute(t, shipped.binary(t), "get", "--addr", addr)
	id := strings.TrimSpace(r.stdout)
	if v, err := strconv.ParseInt(id, 10, 64); err == nil {
		s.ids.record(began, s.ids.now(), worker.ID(v))
	}

	decode := func(env []string, args ...string) (decoded, result) {
		t.Helper()
		r := executeEnv(t, env, shipped.binary(t), append([]string{"decode", "-o", "json", id}, args...)...)
		var d decoded
		if err := json.Unmarshal([]byte(r.stdout), &d); err != nil {
			t.Fatalf("%v: exit %d, %v\n%s", args, r.code, err, r.stderr)
		}
		return d, r
	}
	node, zk := "node "+addr+", cluster default", "ZooKeeper "+s.connect+", cluster default"
	all := []string{"FLAKED_ADDR=" + addr, "FLAKED_ZK=" + s.connect}
	for _, row := range []struct {
		name, from string
		env, args  []string
	}{
		{"as get asked", node, []string{"FLAKED_ADDR=" + addr}, nil},
		{"with ZooKeeper in the environment as well", node, all, nil},
		{"a node", node, nil, []string{"--addr", addr}},
		{"the cluster", zk, nil, []string{"--zk", s.connect}},
		{"the cluster, by its name", zk, all, []string{"--cluster", "default", "--zk", s.connect}},
		{"a node that is gone, and ZooKeeper", zk, []string{"FLAKED_ADDR=127.0.0.1:1", "FLAKED_ZK=" + s.connect}, nil},
		{"the layout", "--layout", all, []string{"--layout", "sonyflake"}},
	} {
		d, r := decode(row.env, row.args...)
		off := time.Since(time.UnixMilli(d.TimestampMs))
		if r.code != 0 || r.stderr != "" || d.Worker != n.worker() || off < 0 || off > patience || d.Warning != "" || d.Layout != worker.Sonyflake().String() || d.LayoutFrom != row.from {
			t.Errorf("%s: exit %d, %+v\n%s", row.name, r.code, d, r.stderr)
		}
	}

	// If no source for the layout is available, decode says that it assumes the default.
	d, r := decode([]string{"FLAKED_ADDR=127.0.0.1:1"})
	if r.code != 4 || d.LayoutFrom != "assumed" || d.Warning != "before 2020" || !strings.Contains(r.stderr, "the default layout is assumed: no answer from a node at 127.0.0.1:1") {
		t.Errorf("exit %d, %+v\n%s", r.code, d, r.stderr)
	}
	refused(t, execute(t, shipped.binary(t), "decode", "--addr", "127.0.0.1:1", id), 3, "no answer from a node at 127.0.0.1:1: connection refused")

	// A node knows the layout without ZooKeeper, even after a restart.
	n.kill()
	ens.Kill(0)
	n.start().ready()
	_, addr, _ = n.address()
	if d, r := decode(nil, "--addr", addr); r.code != 0 || d.Worker != n.worker() || d.LayoutFrom != "node "+addr+", cluster default" {
		t.Errorf("without ZooKeeper: exit %d, %+v\n%s", r.code, d, r.stderr)
	}
}
