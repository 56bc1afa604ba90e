package client

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// cluster is the cluster that a client wants. An address is not an identity: a node of another cluster may listen there
// by now. So each connection begins with the question which cluster answers, in one write with its first request.
type cluster struct {
	mu sync.Mutex
	// wanted is Config.Cluster at first, and then the UUID of the first node that has answered. name and uuid are of
	// that node.
	wanted, name, uuid string
}

// request returns the line that asks a node for its cluster.
func (c *cluster) request() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace("WORKER "+c.wanted) + "\n"
}

// check returns an error unless line is the reply of a node of the cluster.
func (c *cluster) check(addr, line string) error {
	fields := make(map[string]string)
	for field := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(field, "=")
		fields[key] = value
	}
	name, uuid := fields["cluster"], fields["cluster_uuid"]
	if e := replies.Parse(addr, line); strings.HasPrefix(line, "-") && e.Code != ids.WRONGNODE && e.Code != ids.ERR {
		return e
	} else if uuid == "" || strings.HasPrefix(line, "-") && e.Code != ids.WRONGNODE {
		return fmt.Errorf("%s: %.60q: %w", addr, line, errReply)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "-"), c.uuid != "" && uuid != c.uuid:
		return &ids.ReplyError{Addr: addr, Code: ids.WRONGNODE, Text: fmt.Sprintf("reason=%s cluster=%s "+
			"cluster_uuid=%s this node belongs to another cluster than the client: %s. Correct the addresses",
			replies.OtherCluster, name, uuid, strings.TrimSpace(c.name+" "+c.wanted))}
	case uuid == "none":
		e := *replies.ErrNoCluster
		e.Addr = addr
		return &e
	}
	c.name, c.uuid, c.wanted = name, uuid, uuid
	return nil
}

// checkCluster returns an error if a word can be neither the name nor the UUID of a cluster.
func checkCluster(word string) error {
	if len(word) > 64 || strings.ContainsFunc(word, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("._-", r)
	}) {
		return errors.New("client: Config.Cluster must be a name or a UUID: 1 to 64 letters, digits and . _ -")
	}
	return nil
}
