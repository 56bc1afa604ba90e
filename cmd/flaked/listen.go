package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/lineproto"
)

// listen opens all addresses before anything else starts, and stores them in p. A port in use is
// therefore reported at once.
func (p *process) listen() ([]net.Listener, error) {
	var listeners []net.Listener
	for i, given := range p.listenOn {
		network, address, err := dialog.SplitAddr(given)
		if err != nil {
			err = usageError("--listen: %w", err)
		}
		var l net.Listener
		switch {
		case err != nil:
		case network == "unix":
			l, err = newUnixListener(address, p.unix)
		default:
			if l, err = p.listenTCP(given, address); err == nil {
				p.listenOn[i] = boundAddress(address, l)
			}
		}
		if err != nil {
			closeAll(listeners)
			return nil, listenError("--listen", given, err)
		}
		listeners = append(listeners, l)
	}
	p.nodeConfig.Labels.Address = allAdvertised(p.listenOn, p.advertise)
	return listeners, nil
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

// listenTCP refuses an address if other machines could use up IDs there and the operator has not allowed it.
func (p *process) listenTCP(given, address string) (net.Listener, error) {
	config, tokens := p.access.TLS(), p.access.Authenticate() != nil
	switch {
	case dialog.IsLoopback(address), p.allowOpen:
	case config == nil && !tokens:
		return nil, usageError("--listen %s can be reached from other machines, so anyone there could use up IDs. "+
			"Require a token (--token-file FILE) or a certificate (--tls-cert, --tls-key and --tls-client-ca), add "+
			"--allow-open if you trust that network, or listen on 127.0.0.1", given)
	case config == nil:
		p.log.Warn("tokens cross the network in the clear: --tls-cert and --tls-key encrypt them", "listen", given)
	case !tokens && p.guard.ClientCA == "":
		p.log.Warn("TLS without client authentication: anyone who reaches this address is served. --token-file or "+
			"--tls-client-ca requires authentication", "listen", given)
	}
	l, err := net.Listen("tcp", address)
	if err == nil && config != nil {
		l = lineproto.TLS(l, config)
	}
	return l, err
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

func listenError(flag, address string, err error) error {
	if _, coded := errors.AsType[*codedError](err); coded {
		return err // err names the flag
	}
	return fmt.Errorf("%s %s: %s", flag, address, bindErrorText(address, err))
}
