package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "run a node: take a worker id from ZooKeeper and hand out IDs over TCP",
		Description: `Takes a worker slot (the one of its state directory, or a new one) and serves
IDs until it is told to stop. SIGTERM or SIGINT drains: what has been asked is
answered, the bounds are stored, and the next start waits for nothing. A second
signal ends it at once, which is safe too.

Once it has served for a while a node needs ZooKeeper for up to a day (--lease)
neither to serve nor to restart.

  flaked serve --dev                                     try it, without ZooKeeper
  flaked serve --zk 127.0.0.1:2181 --bootstrap           the first node of a cluster
  flaked serve --zk zk1,zk2,zk3/prod --cluster orders    any other
  flaked serve --zk zk1 --release-on-exit                a pod without a disk that lasts`,
		Flags:  serveFlags(),
		Action: serve,
	}
}

func serve(c *cli.Context) error {
	log, err := newLogger(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	opts, err := serveOptions(c)
	if err != nil {
		return err
	}
	listeners, err := opts.listen()
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	backing, err := opts.open(c, log)
	if err != nil {
		return err
	}
	defer backing.close()
	return runNode(c.Context, opts, backing, listeners, log)
}

// backend is a node as the wire serves it: its figures and the wire's own.
type backend struct {
	*node.Node
	server *lineproto.Server
}

func (b *backend) Stats() []lineproto.Stat {
	stats := b.Node.Stats()
	b.server.Counters().Each(func(name string, n int64) {
		stats = append(stats, lineproto.Stat{Name: name, Value: strconv.FormatInt(n, 10)})
	})
	return stats
}

// runNode serves until the context ends or something fails, and then ends in
// order: the connections, which still need the node; the node, which still
// needs ZooKeeper; the connection to it.
func runNode(ctx context.Context, o options, b *backing, listeners []net.Listener, log hclog.Logger) error {
	cfg := o.node
	cfg.Store, cfg.Cache, cfg.Reconnected, cfg.Logger = b.store, b.cache, b.reconnected, log
	n, err := node.New(cfg)
	if err != nil {
		return usageError("%w", err)
	}
	front := &backend{Node: n}
	server, err := lineproto.New(lineproto.Config{Backend: front, MaxBatch: o.maxBatch, AdminHint: o.adminHint(), Logger: log})
	if err != nil {
		return err
	}
	front.server = server

	outer, stopAll := context.WithCancelCause(ctx)
	defer stopAll(nil)
	var serving, keeping, connected sync.WaitGroup
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()
	defer stopStore()

	if b.run != nil {
		connected.Go(func() { stopAll(b.run(storeCtx)) })
	}
	keeping.Go(func() { stopAll(n.Run(nodeCtx)) })
	for _, l := range listeners {
		serving.Go(func() { stopAll(server.Serve(outer, l)) })
	}
	if o.admin != "" {
		stopAdmin, err := serveAdmin(outer, &serving, o, n, log, stopAll)
		if err != nil {
			stopAll(err)
		} else {
			defer stopAdmin()
		}
	}

	<-outer.Done()
	if ctx.Err() != nil {
		log.Info("stopping: answering what has been asked; another signal ends it at once")
	}
	serving.Wait()
	stopNode()
	keeping.Wait()
	stopStore()
	if err := b.store.Close(); err != nil {
		log.Debug("closing the connection to ZooKeeper", "error", err)
	}
	connected.Wait()
	if err := context.Cause(outer); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func serveAdmin(ctx context.Context, wg *sync.WaitGroup, o options, n *node.Node, log hclog.Logger, failed func(error)) (func(), error) {
	a, err := admin.New(admin.Config{Ready: n.Ready, Version: version, Logger: log})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.admin)
	if err != nil {
		return nil, listenError("--admin", o.admin, err)
	}
	wg.Go(func() { failed(a.Serve(ctx, l)) })
	return func() { _ = l.Close() }, nil
}

// listen opens all addresses before anything else is begun: a port in use is
// said at once.
func (o options) listen() ([]net.Listener, error) {
	var listeners []net.Listener
	for _, given := range o.listenOn {
		l, err := o.listenAt(given)
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func (o options) listenAt(given string) (net.Listener, error) {
	network, address, err := splitAddr(given)
	if err != nil {
		return nil, usageError("--listen: %w", err)
	}
	if network == "tcp" && !o.allowOpen && !isLoopback(address) {
		return nil, usageError("--listen %s can be reached from other machines, and anybody there could use up IDs: add --allow-open if that network is trusted, or listen on 127.0.0.1", given)
	}
	var l net.Listener
	if network == "unix" {
		l, err = listenUnix(address)
	} else {
		l, err = net.Listen(network, address)
	}
	if err != nil {
		return nil, listenError("--listen", given, err)
	}
	return l, nil
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

func listenError(flag, address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s %s: the address is taken; another flaked may be running (`flaked healthcheck` tells), or choose another address", flag, address)
	}
	return fmt.Errorf("%s %s: %w", flag, address, err)
}
