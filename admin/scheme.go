package admin

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// errNotTLS means that the first byte is one that no TLS client sends.
var errNotTLS = errors.New("this client does not speak TLS")

// listen returns l with a bound on its connections, and with TLS if Config.TLS is set. It
// offers no HTTP/2: bounds on requests count connections.
func (s *Server) listen(l net.Listener) net.Listener {
	bounded := newConns(l, maxConns)
	bounded.begin = s.checkScheme
	if s.cfg.TLS == nil {
		return bounded
	}
	return tls.NewListener(bounded, s.cfg.TLS)
}

// scheme returns the scheme of the addresses of this server.
func (s *Server) scheme() string {
	if s.cfg.TLS == nil {
		return "http"
	}
	return "https"
}

// checkScheme is called with the first byte of each connection. A client that speaks plain HTTP
// where TLS is spoken gets an answer that it can read, and the connection ends with errNotTLS. A
// client that speaks TLS to plain HTTP gets net/http's status 400, which TLS clients report as
// an HTTP answer. The log says either at most once a minute, because any client can cause it.
func (s *Server) checkScheme(c net.Conn, first byte) error {
	const handshake = 22 // the type of record that a client of TLS begins with
	if (first == handshake) == (s.cfg.TLS != nil) {
		return nil
	}
	if minute := time.Now().Unix() / 60; s.wrongScheme.Swap(minute) != minute {
		s.log.Warn("a client used the wrong scheme. Probes, scrapes and addresses of this port need the right one", "right_scheme", s.scheme(), "peer", c.RemoteAddr().String())
	}
	if s.cfg.TLS == nil {
		return nil
	}
	_, err := io.WriteString(c, "HTTP/1.0 400 Bad Request\r\n"+s.product()+"Content-Type: text/plain; charset=utf-8\r\n\r\nthis port speaks TLS. Use https://\n")
	if half, ok := c.(interface{ CloseWrite() error }); ok && err == nil {
		// Closing with unread bytes would reset the connection, and the client might lose the
		// answer. The handshake's deadline ends the wait.
		_ = half.CloseWrite()
		_, _ = io.CopyN(io.Discard, c, maxHeaderBytes)
	}
	return errNotTLS
}

// product returns the line of the header Server, "" for none.
func (s *Server) product() string {
	if s.cfg.About.Version == "" {
		return ""
	}
	return "Server: flaked/" + s.cfg.About.Version + "\r\n"
}

// certified reports whether a request may use routes that are not open to everybody, as far as
// its client certificate is concerned.
func (s *Server) certified(r *http.Request) bool {
	return !s.cfg.ClientCertificate || r.TLS != nil && len(r.TLS.VerifiedChains) > 0
}
