package main

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
)

const (
	// defaultAdmin is where a node's HTTP is unless it is told otherwise.
	defaultAdmin = "127.0.0.1:7610"
	adminOff     = "off"
)

// listenAdmin opens the admin port, and sets options' to where it is. One that
// was not asked for may be taken: the second node of a machine goes on without.
func (o *options) listenAdmin(log hclog.Logger) (net.Listener, error) {
	if o.admin == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", o.admin)
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && !o.adminAsked:
		log.Warn("the admin port is taken, perhaps by another node: this one has none; --admin HOST:PORT gives it one, --admin off none without a word", "address", o.admin)
		o.admin = ""
		return nil, nil
	case err != nil:
		return nil, listenError("--admin", o.admin, err)
	}
	if host, port, _ := net.SplitHostPort(o.admin); port == "0" {
		_, port, _ = net.SplitHostPort(l.Addr().String())
		o.admin = net.JoinHostPort(host, port)
	}
	o.node.Labels.Admin = o.admin
	return l, nil
}

func (o options) adminServer(n *node.Node, server *lineproto.Server, events *admin.Events, log hclog.Logger) (*admin.Server, error) {
	labels := o.node.Labels
	return admin.New(admin.Config{
		Ready: n.Ready, Workers: func() []node.Snapshot { return []node.Snapshot{n.Snapshot()} }, Counters: server.Counters,
		Events: events, Logger: log,
		About: admin.About{
			Version: version, Name: labels.Name, Host: labels.Host, PID: labels.PID,
			Listen: o.listenOn, Admin: o.admin, StartedMs: time.Now().UnixMilli(),
		},
	})
}
