package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/atomic"
)

// Config is what a node asks of its clients, and shows them.
type Config struct {
	// Cert and Key name PEM files with the node's certificate, intermediate
	// ones behind it, and its key. Empty means no TLS.
	Cert, Key string
	// ClientCA names a PEM file with the authorities of clients' certificates,
	// which then every client must have. Empty means that none are asked for.
	ClientCA string
	// TokenFile names a file with tokens, one a line. Empty means Token.
	TokenFile string
	// Token is tokens, one a line. Empty means that none are asked for.
	Token string
	// Every is how often files are looked at. 0 means each second.
	Every time.Duration
	// Now is the clock that certificates are held against. nil means time.Now.
	Now func() time.Time
	// Logger gets a line for each change, and for what is not well. nil means none.
	Logger hclog.Logger
}

// Server is what was read. Make it with Load, and keep it up to date with Run.
type Server struct {
	cfg     Config
	sources []*source

	tokens tokens
	tls    atomic.Pointer[tls.Config]
	leaf   atomic.Pointer[x509.Certificate]

	said   validity // of the certificate, last
	saidAt time.Time
}

// Load reads everything once.
func Load(cfg Config) (*Server, error) {
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	s := &Server{cfg: cfg}
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
		if _, _, err := source.refresh(); err != nil {
			return nil, err
		}
	}
	s.checkValidity()
	return s, nil
}

// TLS is the configuration for listeners, nil without a certificate.
func (s *Server) TLS() *tls.Config {
	if s.cfg.Cert == "" {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return s.tls.Load(), nil
		},
		// Connections last. A ticket would let in, without a look at its
		// certificate, a client of an authority that has been taken out.
		SessionTicketsDisabled: true,
	}
}

// Authenticate tells whether a token is good. It is nil where none are asked for.
func (s *Server) Authenticate() func(token []byte) bool {
	if s.cfg.TokenFile == "" && s.cfg.Token == "" {
		return nil
	}
	return s.tokens.good
}

// CanChange tells whether there are files to look at.
func (s *Server) CanChange() bool { return len(s.sources) > 0 }

// Run looks at the files now and then, and when it is told to, until ctx is
// done. What cannot be used is logged, and what there was stays in use.
func (s *Server) Run(ctx context.Context, now <-chan os.Signal) {
	if !s.CanChange() {
		return
	}
	tick := time.NewTicker(s.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.refresh(false)
		case sig := <-now:
			s.cfg.Logger.Info("reading certificates and tokens again", "signal", sig.String())
			s.refresh(true)
		}
	}
}

// refresh looks at the files. asked has it say what it has said before.
func (s *Server) refresh(asked bool) {
	for _, source := range s.sources {
		changed, isNews, err := source.refresh()
		switch {
		case err != nil && (isNews || asked):
			s.cfg.Logger.Error("cannot use what the files hold now, so what they held before stays in use", "error", err)
		case err == nil && isNews && !changed:
			s.cfg.Logger.Info("the files hold again what is in use", "files", source.files)
		}
	}
	s.checkValidity()
}

func (s *Server) useTokens(where string, text []byte) error {
	good, err := ParseTokens(where, text)
	if err != nil {
		return err
	}
	s.tokens.set(good)
	s.cfg.Logger.Info("clients have to bring a token", "tokens", len(good))
	for _, token := range good {
		if len(token) < ShortToken {
			s.cfg.Logger.Warn("a token is short enough to be guessed: `openssl rand -hex 32` makes a good one", "from", where)
			break
		}
	}
	s.warnOpen("tokens", s.cfg.TokenFile)
	return nil
}

func (s *Server) useTLS(texts [][]byte) error {
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return fmt.Errorf("%s and %s: %w", s.cfg.Cert, s.cfg.Key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, SessionTicketsDisabled: true}
	if len(texts) > 2 {
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(texts[2]) {
			return fmt.Errorf("%s: there is no PEM certificate in it", s.cfg.ClientCA)
		}
	}
	s.tls.Store(config)
	s.leaf.Store(pair.Leaf)
	s.said = valid
	s.cfg.Logger.Info("using a certificate", "subject", pair.Leaf.Subject.String(), "not_after", pair.Leaf.NotAfter.UTC().Format(time.RFC3339), "client_certificates", len(texts) > 2)
	s.warnOpen("key", s.cfg.Key)
	return nil
}

func (s *Server) warnOpen(what, file string) {
	if file != "" && isOpen(file) {
		s.cfg.Logger.Warn("everybody on this machine may read this file: chmod o= it", "what", what, "file", file)
	}
}

// validity is what a certificate is at a moment.
type validity string

const (
	valid     validity = ""
	early     validity = "is not valid yet"
	endsSoon  validity = "ends soon"
	expired   validity = "has expired"
	sayAgain           = 24 * time.Hour
	soonAtMax          = 14 * 24 * time.Hour
)

// validityOf is endsSoon for the last tenth of a certificate's life, and for
// two weeks at most: one that lives for a day is renewed without hurry.
func validityOf(c *x509.Certificate, now time.Time) validity {
	switch soon := min(c.NotAfter.Sub(c.NotBefore)/10, soonAtMax); {
	case now.Before(c.NotBefore):
		return early
	case now.After(c.NotAfter):
		return expired
	case now.After(c.NotAfter.Add(-soon)):
		return endsSoon
	}
	return valid
}

// checkValidity warns of a certificate that clients will refuse, or soon will.
func (s *Server) checkValidity() {
	leaf := s.leaf.Load()
	if leaf == nil {
		return
	}
	now := s.cfg.Now()
	is := validityOf(leaf, now)
	if is != valid && (is != s.said || now.Sub(s.saidAt) >= sayAgain) {
		s.cfg.Logger.Warn("the certificate "+string(is)+": put a new one into its place, it is noticed", "file", s.cfg.Cert,
			"not_before", leaf.NotBefore.UTC().Format(time.RFC3339), "not_after", leaf.NotAfter.UTC().Format(time.RFC3339))
		s.saidAt = now
	}
	s.said = is
}
