package access

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/atomic"

	"github.com/flaked/flaked/sequence"
)

// Config names the credentials of a node, and those that it requires of its clients.
type Config struct {
	// Cert and Key name PEM files with the node's certificate, followed by intermediate
	// certificates, and its key. Empty means no TLS.
	Cert, Key string
	// ClientCA names a PEM file with certificate authorities. Every client must then have a
	// certificate of one of them. Empty means that clients need no certificate. It is
	// ignored without Cert.
	ClientCA string
	// TokenFile names a file with tokens, one per line. Empty means Token.
	TokenFile string
	// Token is tokens, one per line. Empty means that clients need no token.
	Token string
	// PeerTokenFile names a file whose first token the node sends to other nodes. Empty means the first of its own
	// tokens that is for all sequences.
	PeerTokenFile string
	// PeerCA names a PEM file with the authorities of other nodes' certificates. Empty means those of the system. It is
	// ignored without Cert.
	PeerCA string
	// Logger gets a line for each change and each problem. nil means that nothing is logged.
	Logger hclog.Logger
}

// Server has the credentials that were read. Make it with Load. Run keeps it up to date.
type Server struct {
	cfg     Config
	sources []*source

	tokens tokens
	tls    atomic.Pointer[tls.Config]

	peerToken atomic.String
	peerCAs   atomic.Pointer[x509.CertPool]
}

// Load reads all files once. It returns an error if one of them cannot be used.
func Load(cfg Config) (*Server, error) {
	cfg.Logger = cmp.Or(cfg.Logger, hclog.NewNullLogger())
	s := &Server{cfg: cfg}
	if cfg.Cert != "" && cfg.PeerCA != "" {
		s.sources = append(s.sources, &source{files: []string{cfg.PeerCA}, use: s.usePeerCA})
	}
	if cfg.PeerTokenFile != "" {
		s.sources = append(s.sources, &source{files: []string{cfg.PeerTokenFile}, use: s.usePeerToken})
	}
	if cfg.Cert != "" {
		files := []string{cfg.Cert, cfg.Key}
		if cfg.ClientCA != "" {
			files = append(files, cfg.ClientCA)
		}
		s.sources = append(s.sources, &source{files: files, use: s.useTLS})
	}
	switch {
	case cfg.TokenFile != "":
		s.sources = append(s.sources, &source{files: []string{cfg.TokenFile}, use: func(texts [][]byte) error {
			return s.useTokens(cfg.TokenFile, texts[0])
		}})
	case cfg.Token != "":
		if err := s.useTokens("FLAKED_TOKEN", []byte(cfg.Token)); err != nil {
			return nil, err
		}
	}
	for _, source := range s.sources {
		if _, err := source.refresh(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// TLS returns the configuration for listeners, or nil without a certificate. Each new
// connection uses the files as they were last read.
func (s *Server) TLS() *tls.Config {
	if s.cfg.Cert == "" {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return s.tls.Load(), nil
		},
		// With a session ticket a client could connect without another check of its
		// certificate, after its authority has been removed. Tickets would save little,
		// because connections last long.
		SessionTicketsDisabled: true,
	}
}

// ProbeTLS is like TLS, but a client may connect without a certificate. One that it shows must
// still be valid. It is for ports where some requests, like probes, need none.
func (s *Server) ProbeTLS() *tls.Config {
	config := s.TLS()
	if config != nil {
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			optional := s.tls.Load().Clone()
			if optional.ClientCAs != nil {
				optional.ClientAuth = tls.VerifyClientCertIfGiven
			}
			return optional, nil
		}
	}
	return config
}

// Authenticate returns a function that reports whether a token is valid, and returns the
// token's rights. It returns nil if clients need no token.
func (s *Server) Authenticate() func(token []byte) (rights *sequence.Rights, ok bool) {
	if s.cfg.TokenFile == "" && s.cfg.Token == "" {
		return nil
	}
	return s.tokens.good
}

// Peer returns the token and the TLS configuration for connections to other nodes, as the files were last read. A node
// with a certificate uses TLS, and shows the certificate to nodes that ask for one.
func (s *Server) Peer() (token string, config *tls.Config) {
	if s.cfg.Cert != "" {
		config = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: s.tls.Load().Certificates,
			RootCAs: s.peerCAs.Load()}
	}
	return s.peerToken.Load(), config
}

// every is the time between two readings of the files.
const every = time.Second

// Run reads the files every second, and at each signal on now, until ctx is done. It
// logs contents that cannot be used. The old contents then stay in use.
func (s *Server) Run(ctx context.Context, now <-chan os.Signal) {
	var tick <-chan time.Time
	if len(s.sources) > 0 { // else a node without secrets would wake up for nothing
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			s.refresh(false)
		case sig := <-now:
			if len(s.sources) == 0 {
				s.cfg.Logger.Info("nothing to read again: neither certificates nor a token file are in use", "signal",
					sig.String())
				continue
			}
			s.cfg.Logger.Info("reading certificates and tokens again", "signal", sig.String())
			s.refresh(true)
		}
	}
}

// refresh reads the files. With asked it logs errors again that have been logged before.
func (s *Server) refresh(asked bool) {
	for _, source := range s.sources {
		before := source.failed
		changed, err := source.refresh()
		source.failed = ""
		if err != nil {
			source.failed = err.Error()
		}
		switch {
		case err != nil && (source.failed != before || asked):
			s.cfg.Logger.Error("new credential files invalid, keeping the old ones", "error", err)
		case err == nil && before != "" && !changed:
			s.cfg.Logger.Info("credential files match those in use again", "files", source.files)
		}
	}
}

func (s *Server) useTokens(where string, text []byte) error {
	good, err := ParseTokens(where, text)
	if err != nil {
		return err
	}
	s.tokens.set(good)
	if s.cfg.PeerTokenFile == "" {
		all := slices.IndexFunc(good, func(token Token) bool { return token.Rights == nil })
		s.peerToken.Store("")
		if all >= 0 {
			s.peerToken.Store(good[all].Text)
		}
	}
	s.cfg.Logger.Info("token required from clients", "tokens", len(good))
	if slices.ContainsFunc(good, func(token Token) bool { return len(token.Text) < ShortToken }) {
		s.cfg.Logger.Warn("a token is short enough to be guessed. Make a longer one with `openssl rand -hex 32`",
			"from", where)
	}
	s.warnOpen("tokens", s.cfg.TokenFile)
	return nil
}

func (s *Server) usePeerToken(texts [][]byte) error {
	good, err := ParseTokens(s.cfg.PeerTokenFile, texts[0])
	if err != nil {
		return err
	}
	s.peerToken.Store(good[0].Text)
	s.warnOpen("token for other nodes", s.cfg.PeerTokenFile)
	return nil
}

func (s *Server) usePeerCA(texts [][]byte) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(texts[0]) {
		return fmt.Errorf("%s: no PEM certificate found", s.cfg.PeerCA)
	}
	s.peerCAs.Store(pool)
	return nil
}

func (s *Server) useTLS(texts [][]byte) error {
	for i, what := range []string{"certificate", "key"} {
		if block, _ := pem.Decode(texts[i]); block == nil {
			file := []string{s.cfg.Cert, s.cfg.Key}[i]
			return &FileError{[]string{file}, fmt.Errorf("%s: no PEM %s found", file, what)}
		}
	}
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "tls: ")
		return &FileError{[]string{s.cfg.Cert, s.cfg.Key}, fmt.Errorf("%s and %s cannot be used together: "+
			"%s", s.cfg.Cert, s.cfg.Key, why)}
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		SessionTicketsDisabled: true}
	if len(texts) > 2 {
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(texts[2]) {
			return &FileError{[]string{s.cfg.ClientCA}, fmt.Errorf("%s: no PEM certificate found", s.cfg.ClientCA)}
		}
	}
	s.tls.Store(config)
	s.cfg.Logger.Info("using a certificate", "subject", pair.Leaf.Subject.String(), "not_after",
		pair.Leaf.NotAfter.UTC().Format(time.RFC3339), "client_certificates", len(texts) > 2)
	s.warnOpen("key", s.cfg.Key)
	return nil
}

func (s *Server) warnOpen(what, file string) {
	if file != "" && isOpen(file) {
		s.cfg.Logger.Warn("other users have access to this file. Run chmod o= FILE", "what", what, "file", file)
	}
}
