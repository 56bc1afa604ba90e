package poll

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/web"
	"github.com/flaked/flaked/internal/ops/words"
)

// Asker asks nodes for their own state.
type Asker struct {
	// Host is this machine's name. Without one, nobody on loopback is asked.
	Host string
	// Token is sent to nodes on this machine, and with Everywhere also to others. Without TLS
	// it crosses the network in the clear, to any address that a record in ZooKeeper names.
	Token      string
	Everywhere bool
	// TLS is nil for plain TCP. TLSErr is the reason why it cannot be used. With an error, no node can be asked.
	TLS    *tls.Config
	TLSErr error
	// Advice returns what to do about a failure to secure a connection, or about a node that refuses clients without a
	// token or without TLS, after a full stop. It returns "" for any other error.
	Advice func(error) string
}

// dialAddresses returns where to dial the addresses for clients of a node on machine from here, 8 at most. It leaves
// out those that cannot be dialled from here.
func (a *Asker) dialAddresses(addresses, machine string) (all []string) {
	for addr := range strings.SplitSeq(addresses, ",") {
		if at := a.dialAddress(addr, machine); at != "" && len(all) < 8 {
			all = append(all, at)
		}
	}
	return all
}

// dialAddress returns where to dial an address of a node on machine from here, "" if that is impossible. A unix socket
// and a loopback address can be dialled only if machine is this one.
func (a *Asker) dialAddress(addr, machine string) string {
	here := a.Host != "" && machine == a.Host
	network, address, err := dialog.SplitAddr(addr)
	if err != nil || network == "unix" {
		if err != nil || !here {
			return ""
		}
		return addr
	}
	host, port, _ := net.SplitHostPort(address)
	ip, _ := netip.ParseAddr(host) // the zero Addr for a name
	switch {
	case host == "" || ip.IsValid() && ip.IsUnspecified():
		if host = machine; here {
			host = "127.0.0.1"
		}
		if host == "" {
			return ""
		}
	case dialog.IsLoopback(address) && !here:
		return ""
	}
	return net.JoinHostPort(host, port)
}

// statusReply is what one address has answered to STATUS. A survey keeps less of it: see Reply.
type statusReply struct {
	doc web.Status
	// second is the reply to the second request, "" for none.
	second string
	// outcome is one of the results of asking in package health, and why explains it if there is no answer.
	outcome health.Outcome
	why     string
}

// nodeTime is the time limit of one node's answer.
const nodeTime = 2 * time.Second

// ask sends requests to a node: requests[0] must be a STATUS, and there may be a second one, whose reply has one line.
// named means that the user named the address.
func (a *Asker) ask(ctx context.Context, addr string, named bool, requests ...string) (got statusReply) {
	if a.TLSErr != nil {
		return statusReply{outcome: health.TLSFailed, why: a.TLSErr.Error()}
	}
	node := Target{dialog.Client{TLS: a.TLS, Token: a.tokenFor(addr, named)}, addr, nodeTime}
	lines, err := node.Ask(ctx, strings.Join(requests, "\n"), len(requests))
	if err != nil {
		got.outcome, got.why = a.WhySilent(err)
		return got
	}
	doc, ok := ParseStatus(lines[0])
	if !ok {
		return statusReply{outcome: health.AnotherNode, why: "its reply to STATUS is not a node's"}
	}
	return statusReply{doc: doc, second: strings.Join(lines[1:], ""), outcome: health.Answered}
}

// tokenFor returns the token to send to an address, "" for none. named means that the user named the address.
func (a *Asker) tokenFor(addr string, named bool) string {
	// Anybody who can write the record could name a server with a certificate of a public authority, but not of one
	// that the user named.
	vouched := named || a.TLS != nil && a.TLS.RootCAs != nil
	if vouched || a.Everywhere || strings.HasPrefix(addr, "unix:") || dialog.IsLoopback(addr) {
		return a.Token
	}
	return ""
}

// WhySilent returns why there is no answer, and details.
func (a *Asker) WhySilent(err error) (outcome health.Outcome, why string) {
	advice := a.Advice(err)
	reply, refused := errors.AsType[*ids.ReplyError](err)
	if silent, ok := errors.AsType[*SilentError](err); ok {
		why = words.Clean(silent.Why)
	}
	switch {
	case refused && advice != "":
		return health.AccessDenied, words.Clean(reply.Line()) + advice
	case refused:
		return health.NoAnswer, words.Clean(reply.Line())
	case dialog.KindOf(err) == dialog.TimedOut, errors.Is(err, context.Canceled):
		return health.TimedOut, cmp.Or(why, "timed out")
	case advice != "":
		return health.TLSFailed, why + advice
	}
	return health.NoAnswer, why
}

// ParseStatus returns the document in a reply to STATUS, and whether it is a node's.
func ParseStatus(line string) (doc web.Status, ok bool) {
	err := json.Unmarshal([]byte(line), &doc)
	return doc, err == nil && doc.Node.Phase != ""
}

// maxParallel is the greatest number of addresses that are asked at once.
const maxParallel = 128

// inParallel calls f with 0 to n-1, maxParallel at a time, and returns when all calls have ended.
func inParallel(n int, f func(i int)) {
	var asking errgroup.Group
	asking.SetLimit(maxParallel)
	for i := range n {
		asking.Go(func() error { f(i); return nil })
	}
	_ = asking.Wait() // always nil
}
