package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/web"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
)

const (
	adminPort = "7610"
	// defaultAdmin is the default of --admin.
	defaultAdmin = "127.0.0.1:" + adminPort
	adminOff     = "off"
)

// readAdmin returns the HOST:PORT of --admin, "" for none.
func readAdmin(c *cli.Context) (string, error) {
	given := c.String("admin")
	if given == adminOff {
		return "", nil
	}
	if slices.Contains([]string{"", "0", "no", "none", "false", "disabled"}, strings.ToLower(given)) {
		return "", usageError("--admin: %q is not HOST:PORT. --admin off disables the port", given)
	}
	address, err := dialog.SplitTCP(given, adminPort)
	if err != nil {
		return "", usageError("--admin: %w", err)
	}
	return address, nil
}

// listenAdmin opens the admin port. It opens none if the default port is taken: another node on this machine may have
// it, and this one goes on without.
func (p *process) listenAdmin() error {
	if p.adminAddr == "" {
		return nil
	}
	l, err := net.Listen("tcp", p.adminAddr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && !p.adminGiven:
		p.log.Warn("the admin address is already in use, perhaps by another node: continuing without admin port. "+
			"--admin HOST:PORT sets another address, --admin off disables the port", "address", p.adminAddr)
		return nil
	case err != nil:
		return p.adminError(err)
	}
	p.adminListener, p.boundAdminAddr = l, boundAddress(p.adminAddr, l)
	return nil
}

// adminError returns the error of a start for which the admin port cannot be opened.
func (p *process) adminError(err error) error {
	switch {
	case slices.Contains(p.boundAddrs, p.adminAddr):
		return usageError("--admin and --listen are both %s. Give them different ports", p.adminAddr)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--admin %s: address already in use. Give each node of a machine an --admin address of its "+
			"own, or --admin off", p.adminAddr)
	}
	return listenError("--admin", p.adminAddr, err)
}

// adminHint returns where the node speaks HTTP, for a client that does so at another port.
func (p *process) adminHint() string {
	if p.boundAdminAddr == "" {
		return "this is not an HTTP port, and the node has none: --admin HOST:PORT sets one"
	}
	return "the HTTP admin port is " + p.adminURL(p.boundAdminAddr)
}

// adminURL returns an address of the admin port as it stands in records and messages: HOST:PORT
// for plain HTTP, and https://HOST:PORT for TLS.
func (o options) adminURL(addr string) string {
	if o.adminTLS && addr != "" {
		return "https://" + addr
	}
	return addr
}

// adminAccess returns the check of tokens at the admin port, nil for none. If closed is not "", the
// port answers only probes and metrics, and closed says why. Other machines must not get IDs or the
// cluster's state unless the operator allows it. Probes come from other machines without a token.
func (p *process) adminAccess() (authenticate func([]byte) (*sequence.Rights, bool), closed string) {
	authenticate = p.access.Authenticate()
	switch {
	case dialog.IsLoopback(p.boundAdminAddr):
	case authenticate != nil && !p.adminTLS:
		p.log.Warn("the admin port does not use TLS: tokens sent to it cross the network in the clear. --tls-cert and "+
			"--tls-key encrypt them", "address", p.boundAdminAddr)
	case authenticate == nil && !p.allowOpen && !(p.adminTLS && p.accessConfig.ClientCA != ""):
		p.log.Info("the admin port can be reached from other machines: it serves only probes and /metrics. "+
			"--token-file, --tls-client-ca, or --allow-open opens the rest", "address", p.boundAdminAddr)
		closed = "other machines can reach this address, so it serves only /livez, /readyz and /metrics. For the " +
			"rest, give the node tokens (--token-file FILE), require client certificates (--tls-cert, --tls-key and " +
			"--tls-client-ca), add --allow-open if you trust the network, or use an --admin address on 127.0.0.1"
	}
	return authenticate, closed
}

// adminServer returns the server of the admin port. Without such a port, it only answers STATUS.
func (p *process) adminServer(server *lineproto.Server) *web.Server {
	cfg := web.Of(p.node)
	cfg.Issuer = p.sequences()
	cfg.Counters, cfg.Reserve, cfg.Events, cfg.Logger = server.Counters, server.Reserve, p.events, p.log
	if p.boundAdminAddr != "" {
		cfg.Authenticate, cfg.Closed = p.adminAccess()
		cfg.Loopback = dialog.IsLoopback(p.boundAdminAddr) && !p.allowOpen
	}
	if p.adminTLS {
		cfg.TLS, cfg.ClientCertificate = p.access.ProbeTLS(), p.accessConfig.ClientCA != ""
	}
	cfg.About.Listen, cfg.About.Admin, cfg.About.Dev = p.boundAddrs, p.adminURL(p.boundAdminAddr), p.nodeConfig.InMemory
	return web.New(cfg)
}
