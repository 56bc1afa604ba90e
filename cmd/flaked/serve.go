package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/audit"
	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/internal/nodewire"
	"github.com/flaked/flaked/internal/systemd"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/timeguard"
)

const serveName = "serve"

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:  serveName,
		Usage: "run a node: acquire a worker from ZooKeeper and serve IDs over TCP",
		Description: `Acquires a worker (that of its state directory, or a new one) and serves IDs until it
is stopped. On SIGTERM or SIGINT it answers pending requests and stores its bounds, so
that the next start does not wait. A second signal ends it at once, which is safe too.
flaked drain stops it without cutting its clients.

After a while, a node can serve and restart without ZooKeeper for up to a day
(--lease).

  flaked serve --dev                                     try it, without ZooKeeper
  flaked serve --zk 127.0.0.1:2181 --bootstrap           the first node of a cluster
  flaked serve --zk zk1,zk2,zk3/prod --cluster orders    any other node
  flaked serve --zk zk1 --release-on-exit                a pod without a lasting disk

An address that other machines can reach needs --token-file, TLS (--tls-cert and
--tls-key) or --allow-open. Clients need a token on all addresses, but TLS only on
TCP. The files of both are read again within a second of a change, and on SIGHUP.

  openssl rand -hex 32 > token && chmod 600 token
  flaked serve --zk zk1 --listen 0.0.0.0:7609 --token-file token --tls-cert c.pem --tls-key k.pem
  flaked serve --zk zk1 --listen unix:/run/flaked/sock --unix-mode 0660 --unix-group app`,
		Flags:  serveFlags(),
		Action: serve,
	}
}

func serve(c *cli.Context) error {
	log, err := newLogger(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	return logged(c, log, serveNodes(c, log))
}

func serveNodes(c *cli.Context, log hclog.InterceptLogger) error {
	events := admin.NewEvents(nil)
	log.RegisterSink(events)
	for _, warning := range ignoredVariables(c.App.Commands, os.Environ()) {
		log.Warn(warning)
	}
	opts, wrong := serveOptions(c)
	if len(wrong) > 0 {
		return wrong[0]
	}
	opts.guard.Logger = log.Named("credentials")
	guard, err := credentials.Load(opts.guard)
	if err != nil {
		return credentialError(opts.guard, err)
	}
	listeners, err := opts.listen(guard, log)
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	adminListener, err := opts.listenAdmin(log)
	if err != nil {
		return err
	}
	if adminListener != nil {
		defer adminListener.Close()
	}
	signals, ignore := drainSignals() // before a node can be found by its state directory
	defer ignore()
	backing, err := opts.open(c, log)
	if err != nil {
		return err
	}
	defer backing.close()
	return runNode(c.Context, opts, backing, guard, listeners, adminListener, signals, events, log)
}

// backend serves the nodes. Its Stats add the server's counters to those of the nodes.
type backend struct {
	*nodewire.Backend
	server *lineproto.Server
}

func (b *backend) Stats() []lineproto.Stat {
	stats := b.Backend.Stats()
	b.server.Counters().Each(func(name string, n int64) {
		stats = append(stats, lineproto.Stat{Name: name, Value: strconv.FormatInt(n, 10)})
	})
	return stats
}

// newNodes returns the nodes, one for each worker.
func (o options) newNodes(b *backing, log hclog.Logger) (*node.NodeGroup, error) {
	var nodes []*node.Node
	clock := timeguard.NewIssuing(timeguard.System())
	for i, cache := range b.caches {
		cfg := o.node
		cfg.ZooKeeper = b.zookeeper
		cfg.Store, cfg.Cache, cfg.Reconnected, cfg.Logger, cfg.Issuing = b.store, cache, b.reconnected[i], log, clock
		if i > 0 {
			cfg.Labels.Name += fmt.Sprintf("#%d", i+1)
			cfg.Logger = log.Named(fmt.Sprintf("worker-%d", i+1))
		}
		n, err := node.New(cfg)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return node.NewNodeGroup(nodes...), nil
}

// witnessFile returns the path of what the node remembers of named sequences, "" for --dev.
func (o options) witnessFile() string {
	if o.dev {
		return ""
	}
	return filepath.Join(o.stateDir, "sequences.cache")
}

// runNode serves until the context ends or something fails. It then ends the connections, which
// need the node, then the node, which needs ZooKeeper, then the connection to ZooKeeper.
func runNode(ctx context.Context, o options, b *backing, guard *credentials.Server, listeners []net.Listener, adminListener net.Listener, drains <-chan os.Signal, events *admin.Events, log hclog.Logger) error {
	var issuer *seqstore.Issuer
	o.node.LostData = func(found string) { issuer.NoteLoss(found) }
	o.node.Followed = func() coordinator.Followed { return coordinator.Followed(issuer.Followed()) }
	nodes, err := o.newNodes(b, log)
	if err != nil {
		return usageError("%w", err)
	}
	issuer = seqstore.New(seqstore.Config{
		Store: b.store, Tenure: nodes.Tenure(), Now: func() int64 { return nodes.Now().UnixMilli() }, Mono: timeguard.System().Mono,
		By: o.node.Labels.Name, Follow: o.node.Heartbeat, WitnessFile: o.witnessFile(), Log: log.Named("sequences"),
	})
	front := &backend{Backend: nodewire.New(nodes, version)}
	server, err := lineproto.New(lineproto.Config{
		Backend: front, Sequences: nodewire.Sequences{Issuer: issuer}, Authenticate: guard.Authenticate(), MaxConns: o.maxConns(len(listeners), log), MaxBatch: o.maxBatch, AdminHint: o.adminHint(), Logger: log,
		Engine: o.engine, Loops: o.loops, Spin: o.spin, Measure: adminListener != nil,
	})
	if err != nil {
		return err
	}
	front.server = server

	outer, stopAll := context.WithCancelCause(ctx)
	defer stopAll(nil)
	var serving, keeping, issuing, connected sync.WaitGroup
	issuerCtx, stopIssuer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopIssuer()
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()
	defer stopStore()

	if b.run != nil {
		connected.Go(func() { stopAll(b.run(storeCtx)) })
		serving.Go(func() { audit.Follow(outer, b.store, time.Tick(audit.Every), log) })
	}
	keeping.Go(func() { stopAll(nodes.Run(nodeCtx)) })
	issuing.Go(func() { issuer.Run(issuerCtx) })
	for _, l := range listeners {
		serving.Go(func() { stopAll(server.Serve(outer, l)) })
	}
	serving.Go(func() {
		systemd.Run(outer, systemd.Config{
			Look: func() (bool, string) { return serviceState(front.Snapshots()) }, Live: nodes.Live, Logger: log.Named("systemd"),
		})
	})
	serving.Go(func() {
		drain(outer, drains, o.drainTime, nodes, server, o.recordDrain(b.store, log), log)
		stopAll(nil)
	})
	if guard.CanChange() {
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		serving.Go(func() { guard.Run(outer, hangups) })
	}
	if adminListener != nil {
		a, err := o.adminServer(front.Backend, server, issuer, b.store, guard, events, log)
		if err != nil {
			stopAll(err)
		} else {
			serving.Go(func() { stopAll(a.Serve(outer, adminListener)) })
		}
	}

	<-outer.Done()
	if ctx.Err() != nil {
		log.Info("stopping: answering pending requests; another signal ends it at once")
	}
	serving.Wait()
	stopIssuer()
	issuing.Wait() // it needs the nodes' workers to give back what it has not issued
	stopNode()
	keeping.Wait()
	stopStore()
	if err := b.store.Close(); err != nil {
		log.Debug("closing the connection to ZooKeeper failed", "error", err)
	}
	connected.Wait()
	if err := context.Cause(outer); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
