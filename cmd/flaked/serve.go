package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/app"
	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/host/systemd"
	"github.com/flaked/flaked/internal/ops/web"
	"github.com/flaked/flaked/lineproto"
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
	log, closeLog, err := newLogger(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	defer closeLog()
	useTwoProcessors()
	signal.Ignore(syscall.SIGPIPE) // if the reader of the log has ended, writing fails, and the node goes on
	return reportInLog(c, log, serveNode(c, log))
}

// process is the node of this process, with its ports.
type process struct {
	options
	ports
	access *access.Server
	events *web.Events
	log    hclog.InterceptLogger
	// drains gets the signals of `flaked drain`, and hangups gets SIGHUP.
	drains, hangups chan os.Signal
	node            *app.Node
}

// serveNode opens the ports, starts the node and serves it.
func serveNode(c *cli.Context, log hclog.InterceptLogger) (err error) {
	p := &process{events: new(web.Events), log: log, drains: make(chan os.Signal, 1),
		hangups: make(chan os.Signal, 1)}
	// Before a node can be found by its state directory. Without a receiver, SIGHUP would end the process.
	signal.Notify(p.drains, drainSignal, releaseSignal)
	defer signal.Stop(p.drains)
	signal.Notify(p.hangups, syscall.SIGHUP)
	defer signal.Stop(p.hangups)
	log.RegisterSink(p.events)
	for _, warning := range ignoredVariables(c.App.Commands, os.Environ()) {
		log.Warn(warning)
	}
	if p.options, err = readOptions(c); err != nil {
		return err
	}
	accessConfig := p.accessConfig
	accessConfig.Logger = log.Named("credentials")
	if p.access, err = access.Load(accessConfig); err != nil {
		return credentialError(accessConfig, err)
	}
	defer p.close()
	if err := p.openPorts(); err != nil {
		return err
	}
	cfg := p.config()
	if cfg.Node.InMemory {
		log.Warn(health.DevelopmentProblem.String())
	} else if cfg.ZooKeeper, err = readZK(c); err != nil {
		return err
	}
	if p.node, err = app.New(cfg); err != nil {
		return usageError("%w", err)
	}
	if err := p.node.Start(); err != nil {
		return explainStateDir(err)
	}
	return p.serve(c.Context)
}

// config returns the configuration of the node, but for ZooKeeper. Others find the node at the ports that are open.
func (p *process) config() app.Config {
	cfg := app.Config{Node: p.nodeConfig, StateDir: p.stateDir, PeerAccess: p.access.Peer}
	cfg.Node.Logger, cfg.Node.Trace = p.log, newTrace(p.log)
	cfg.Node.Labels.Address = allAdvertised(p.boundAddrs, p.advertise)
	cfg.Node.Labels.Admin = p.adminURL(advertised(p.boundAdminAddr, p.advertise))
	return cfg
}

// backend adds the server's counters to the Stats of the node, and answers STATUS as the admin port does.
type backend struct {
	lineproto.Backend
	server *lineproto.Server
	admin  *web.Server
}

func (b *backend) status(peers bool) string { return b.admin.StatusLine(peers) }

func (b *backend) Stats() [][2]string {
	stats := b.Backend.Stats()
	b.server.Counters().Each(func(name string, n int64) {
		stats = append(stats, [2]string{name, strconv.FormatInt(n, 10)})
	})
	return stats
}

// servers returns the servers of both ports. The line protocol answers STATUS with the status of the admin port.
func (p *process) servers() (*lineproto.Server, *web.Server, error) {
	b := &backend{Backend: p.node.Core()}
	var err error
	b.server, err = lineproto.New(lineproto.Config{
		Backend: b, Sequences: p.sequences(), Status: b.status, Authenticate: p.access.Authenticate(),
		MaxConns: p.limitConns(), AdminHint: p.adminHint(), Logger: p.log,
	})
	if err == nil {
		b.admin = p.adminServer(b.server)
	}
	return b.server, b.admin, err
}

// sequences returns the named sequences of the node.
func (p *process) sequences() web.Issuer {
	if p.nodeConfig.InMemory {
		return devSequences{p.node.Issuer(), p.node.Store()}
	}
	return p.node.Issuer()
}

// serve serves the node until ctx is done, it is drained, or something fails. It then ends the
// connections, which need the node, and then the node.
func (p *process) serve(ctx context.Context) (err error) {
	defer func() {
		if ended := p.node.Close(context.Background()); err == nil {
			err = ended
		}
		err = explainStateDir(err)
	}()
	server, adminServer, err := p.servers()
	if err != nil {
		return err
	}
	serveCtx, stopAll := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopAll(nil)
	var serving sync.WaitGroup
	serving.Go(func() {
		select {
		case <-ctx.Done():
			p.log.Info("stopping: answering pending requests; another signal ends it at once")
			p.giveSequencesAway()
			stopAll(nil)
		case <-serveCtx.Done():
		}
	})
	p.startServers(serveCtx, stopAll, &serving, server, adminServer)
	select {
	case <-serveCtx.Done():
	case <-p.node.Done(): // Close returns why
		stopAll(nil)
	}
	serving.Wait()
	if err := context.Cause(serveCtx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// startServers starts the goroutines that serve the ports and watch over the node. They end when ctx is done. The first
// that fails, or has drained the node, ends the others with stopAll.
func (p *process) startServers(
	ctx context.Context, stopAll context.CancelCauseFunc, serving *sync.WaitGroup, server *lineproto.Server,
	adminServer *web.Server,
) {
	for _, l := range p.listeners {
		serving.Go(func() { stopAll(server.Serve(ctx, l)) })
		if socket, ok := l.(*unixListener); ok {
			serving.Go(func() { socket.watch(ctx, p.nodeConfig.Heartbeat, p.log) })
		}
	}
	serving.Go(func() {
		systemd.Run(ctx, systemd.Config{
			Look:   func() (bool, string) { return serviceState(p.node.Core().Snapshot()) },
			Live:   p.node.Core().Live,
			Logger: p.log.Named("systemd"),
		})
	})
	serving.Go(func() {
		p.drain(ctx, server)
		stopAll(nil)
	})
	serving.Go(func() { p.access.Run(ctx, p.hangups) })
	if p.adminListener != nil {
		serving.Go(func() { stopAll(adminServer.Serve(ctx, p.adminListener)) })
	}
}
