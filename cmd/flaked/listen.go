package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/lineproto"
)

// ports are the open ports of a node.
type ports struct {
	// listeners are those of --listen, and boundAddrs their addresses, with the ports that the kernel chose.
	listeners  []net.Listener
	boundAddrs []string
	// adminListener is that of --admin, nil for none, and boundAdminAddr its address, "" for none.
	adminListener  net.Listener
	boundAdminAddr string
}

// openPorts opens all ports before anything else starts. A port in use is therefore reported at once.
func (p *process) openPorts() error {
	for _, given := range p.listenAddrs {
		network, address, err := dialog.SplitAddr(given)
		if err != nil {
			return usageError("--listen: %w", err)
		}
		var l net.Listener
		if network == "unix" {
			l, err = newUnixListener(address, p.unixOptions)
		} else {
			l, err = p.listenTCP(given, address)
		}
		if err != nil {
			return listenError("--listen", given, err)
		}
		if network != "unix" {
			given = boundAddress(address, l)
		}
		p.listeners, p.boundAddrs = append(p.listeners, l), append(p.boundAddrs, given)
	}
	return p.listenAdmin()
}

// close closes all ports.
func (p *ports) close() {
	for _, l := range p.listeners {
		_ = l.Close()
	}
	if p.adminListener != nil {
		_ = p.adminListener.Close()
	}
}

// boundAddress returns the address of a flag, with the port that the kernel chose if it was given as 0.
func boundAddress(given string, l net.Listener) string {
	host, port, _ := net.SplitHostPort(given)
	if port != "0" {
		return given
	}
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port)
}

// listenTCP listens on a TCP address. Without --allow-open, it refuses one that other machines can reach if the node
// has neither tokens nor a certificate.
func (p *process) listenTCP(given, address string) (net.Listener, error) {
	config, tokens := p.access.TLS(), p.access.Authenticate() != nil
	if err := checkOpen(address, p.accessConfig, p.allowOpen); err != nil {
		return nil, usageError("%w", err)
	}
	switch {
	case dialog.IsLoopback(address), p.allowOpen:
	case config == nil:
		p.log.Warn("tokens cross the network in the clear: --tls-cert and --tls-key encrypt them", "listen", given)
	case !tokens && p.accessConfig.ClientCA == "":
		p.log.Warn("TLS without client authentication: anyone who reaches this address is served. --token-file or "+
			"--tls-client-ca requires authentication", "listen", given)
	}
	l, err := net.Listen("tcp", address)
	if err == nil && config != nil {
		l = lineproto.TLS(l, config)
	}
	return l, err
}

// checkOpen returns the reason why a node with these tokens and certificates refuses to listen on a TCP address, nil
// if it does not refuse. allowOpen is --allow-open.
func checkOpen(address string, cfg access.Config, allowOpen bool) error {
	if allowOpen || dialog.IsLoopback(address) || cfg.Cert != "" || cfg.TokenFile != "" || cfg.Token != "" {
		return nil
	}
	return fmt.Errorf("--listen %s can be reached from other machines, so anyone there could use up IDs. "+
		"Require a token (--token-file FILE) or a certificate (--tls-cert, --tls-key and --tls-client-ca), add "+
		"--allow-open if you trust that network, or listen on 127.0.0.1", address)
}

func listenError(flag, address string, err error) error {
	if _, coded := errors.AsType[*codedError](err); coded {
		return err // err names the flag
	}
	return fmt.Errorf("%s %s: %s", flag, address, bindErrorText(address, err))
}
