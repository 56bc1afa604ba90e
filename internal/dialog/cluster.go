package dialog

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// CorrectAddresses ends the text of the error for a node of another cluster.
const CorrectAddresses = ". Correct the addresses"

// Cluster is the cluster that a client wants. An address is not an identity: a node of another cluster may listen there
// by now. So each connection begins with the question which cluster answers. Make it with Want. Any number of
// goroutines may use it.
type Cluster struct {
	mu sync.Mutex
	// wanted is the name or the UUID that was given, and then the UUID of the first node that has answered. name and
	// uuid are of that node.
	wanted, name, uuid string
}

// Want returns the cluster with a name or a UUID. "" means that of the first node that answers.
func Want(wanted string) *Cluster { return &Cluster{wanted: wanted} }

// Request returns the line that asks a node for its cluster.
func (c *Cluster) Request() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace("WORKER "+c.wanted) + "\n"
}

// Check returns an error unless line is the reply of a node of the cluster. If the node belongs to another one, the
// error is an *ids.ReplyError with the code WRONGNODE, which names both. A node that refuses Request with WRONGNODE
// gives the fields cluster= and cluster_uuid= in the text, so its refusal is read as a reply.
//
// A node answers WORKER with -ERR only where it requires TLS. Another server calls the request unknown, so any other
// -ERR is an ErrReply.
func (c *Cluster) Check(addr, line string) error {
	e, refused := errors.AsType[*ids.ReplyError](Refusal(addr, line))
	if refused && e.Code != ids.WRONGNODE && (e.Code != ids.ERR || e.Text == replies.ErrNeedsTLS.Text) {
		return e
	}
	fields := Fields(line)
	name, uuid := fields["cluster"], fields["cluster_uuid"]
	if uuid == "" || refused && e.Code != ids.WRONGNODE {
		return notReply(addr, line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case uuid == "none":
		e := *replies.ErrNoCluster
		e.Addr = addr
		return &e
	//mutant:o11-any-cluster by TestClusterOfANode -> case refused:
	case refused, c.wanted != "" && c.wanted != uuid && c.wanted != name, c.uuid != "" && c.uuid != uuid:
		return &ids.ReplyError{Addr: addr, Code: ids.WRONGNODE, Text: fmt.Sprintf("reason=%s this node belongs to "+
			"cluster %s, not to %s%s", replies.OtherCluster, inWords(name, uuid), c.inWords(), CorrectAddresses)}
	}
	c.name, c.uuid, c.wanted = name, uuid, uuid
	return nil
}

// inWords names the cluster. mu is held.
func (c *Cluster) inWords() string {
	if c.uuid == "" {
		return c.wanted
	}
	return inWords(c.name, c.uuid)
}

func inWords(name, uuid string) string { return fmt.Sprintf("%s (%s)", name, uuid) }

// CheckCluster returns an error if a word can be neither the name nor the UUID of a cluster. "" is no error.
func CheckCluster(word string) error {
	if len(word) > 64 || strings.ContainsFunc(word, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("._-", r)
	}) {
		return errors.New("must be the name or the UUID of a cluster: 1 to 64 letters, digits and . _ -")
	}
	return nil
}
