package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/ordered/peer"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/dialog"
)

const (
	// peerTime is the time for all questions to other nodes, and maxPeers the number of nodes that are asked.
	peerTime = 1500 * time.Millisecond
	maxPeers = 64
)

// checkPeers judges whether this node and the others reach each other, if the cluster has ordered sequences.
func checkPeers(ctx context.Context, cfg Config, zk store.Store) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, peerTime)
	defer cancel()
	nodes, err := operator.Commands{Store: zk}.Nodes(ctx)
	if err != nil {
		return []Finding{failed("peers", err)}
	}
	nodes = slices.DeleteFunc(nodes, func(address string) bool { return address == cfg.Address })
	if len(nodes) == 0 && !hasOrdered(ctx, zk) {
		return nil
	}
	if f, bad := judgeAddress(cfg.Address, nodes); bad {
		found = append(found, f)
	}
	creds, err := cfg.Peer()
	if err != nil { // checkCredentials reports it
		return found
	}
	cl, err := coordinator.PeekCluster(ctx, zk)
	if err != nil {
		return append(found, failed("peers", err))
	}
	return append(found, tryPeers(ctx, creds, cl.UUID, nodes[:min(len(nodes), maxPeers)])...)
}

// hasOrdered reports whether the cluster has an ordered sequence, as far as that can be read in time.
func hasOrdered(ctx context.Context, zk store.Store) bool {
	all, _, _ := operator.Commands{Store: zk}.List(ctx, "")
	return slices.ContainsFunc(all, func(n record.Named) bool { return n.Mode == record.Ordered && n.DeletedAt == 0 })
}

// judgeAddress judges where other nodes reach this one. nodes are their addresses.
func judgeAddress(own string, nodes []string) (f Finding, bad bool) {
	f = Finding{Check: "peers", Level: Warn, Advice: "Give the node --advertise HOST, or a --listen address that " +
		"other machines reach"}
	switch {
	case own == "":
		f.Text = "other nodes have no address at which they can ask this one for ordered sequences"
		return f, true
	case dialog.IsLoopback(own) && slices.ContainsFunc(nodes, func(a string) bool { return !dialog.IsLoopback(a) }):
		f.Text = "other machines cannot ask this node for ordered sequences: it advertises " + own
		return f, true
	}
	return f, false
}

// tryPeers asks all nodes at the same time whether they belong to this cluster, and accept this node.
func tryPeers(ctx context.Context, creds dialog.Client, cluster string, nodes []string) (found []Finding) {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, address := range nodes {
		wg.Go(func() { errs[i] = peer.Check(ctx, creds, address, cluster) })
	}
	wg.Wait()
	accepted := 0
	for i, err := range errs {
		if err == nil {
			accepted++
			continue
		}
		text := fmt.Sprintf("this node cannot ask the one at %s for ordered sequences: %v", nodes[i], err)
		found = append(found, Finding{Check: "peers", Level: Fail, Text: text, Advice: peerAdvice(err)})
	}
	if accepted == len(nodes) && accepted > 0 {
		found = append(found, Finding{Check: "peers", Level: OK,
			Text: fmt.Sprintf("other nodes answer and accept this one: %d", accepted)})
	}
	return found
}

// peerAdvice returns what to do about a node that does not answer, or does not accept this one.
func peerAdvice(err error) string {
	reply, _ := errors.AsType[*ids.ReplyError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	op, _ := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case reply != nil && (reply.Code == ids.NOAUTH || reply.Code == ids.WRONGPASS):
		return "Give this node --peer-token-file with a token that the other one accepts"
	case reply != nil && reply.Code == ids.WRONGNODE:
		return "A node of another cluster listens there. Give the nodes of this one addresses of their own, with " +
			"--advertise"
	case plain, reply != nil && reply.Text == replies.ErrNeedsTLS.Text:
		return "Give all nodes --tls-cert and --tls-key, or none"
	case untrusted:
		return "Give this node --peer-ca with the authority of the other one's certificate, which must have the host " +
			"that it advertises"
	case op != nil && op.Op == "remote error": // an alert of TLS
		return "Give this node a --tls-cert that is valid for clients, too, of an authority in --tls-client-ca there"
	}
	return "If that node runs, open the firewall between the two, or correct --advertise there"
}
