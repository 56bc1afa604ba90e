package dialog

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

func isNotReady(err error) bool {
	e, ok := errors.AsType[*ids.ReplyError](err)
	return ok && e.Code == ids.NOTREADY
}

func TestClusterOfANode(t *testing.T) {
	for line, want := range map[string]string{
		"worker=0 cluster=a cluster_uuid=u": "",
		"worker=0 cluster=b cluster_uuid=v": "x:1 answered -WRONGNODE reason=other-cluster " +
			"this node belongs to cluster b (v), not to a (u). Correct the addresses",
		replies.NotInCluster("b", "v", "a").Line(): "x:1 answered -WRONGNODE reason=other-cluster " +
			"this node belongs to cluster b (v), not to a (u). Correct the addresses",
		"worker=0 cluster=a cluster_uuid=v": "x:1 answered -WRONGNODE reason=other-cluster " +
			"this node belongs to cluster a (v), not to a (u). Correct the addresses",
		replies.ErrNeedsTLS.Line():      "x:1 answered " + replies.ErrNeedsTLS.Line(),
		"-NOTREADY starting":            "x:1 answered -NOTREADY starting",
		"-ERR unknown command 'WORKER'": `x:1: "-ERR unknown command 'WORKER'": reply is not from a flaked node. Check the address`,
		"7":                             `x:1: "7": reply is not from a flaked node. Check the address`,
	} {
		c := Want("a")
		if err := c.Check("x:1", "worker=0 cluster=a cluster_uuid=none"); !isNotReady(err) || c.uuid != "" {
			t.Errorf("a node that starts: %v, %q", err, c.uuid)
		}
		if err := c.Check("x:1", "worker=0 cluster=b cluster_uuid=u"); err == nil || c.uuid != "" {
			t.Errorf("a node of another name: %v, %q", err, c.uuid)
		}
		if err := c.Check("x:1", "worker=0 cluster=a cluster_uuid=u"); err != nil || c.Request() != "WORKER u\n" {
			t.Errorf("%v, then %q", err, c.Request())
		}
		if err := c.Check("x:1", line); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
