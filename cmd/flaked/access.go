package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/access"
)

// tokenEnv names the environment variable that holds tokens. No flag takes a token itself, as
// everybody on the machine can read arguments.
const tokenEnv = "FLAKED_TOKEN"

// readSecretSource returns the path in a flag and the text in an environment variable. It returns an
// error if both are given.
func readSecretSource(c *cli.Context, flag, variable string) (file, inline string, err error) {
	file, inline = c.String(flag), os.Getenv(variable)
	if file != "" && inline != "" {
		return "", "", usageError("--%s and %s are both given. Leave one out", flag, variable)
	}
	return file, inline, nil
}

// readSecret returns the text in the file that a flag names, or in an environment variable. where
// says which of them: the variable, or the flag and the file.
func readSecret(c *cli.Context, flag, variable string) (where, text string, err error) {
	file, inline, err := readSecretSource(c, flag, variable)
	if err != nil || file == "" {
		return variable, inline, err
	}
	content, err := readText("--"+flag, file)
	return "--" + flag + ": " + file, string(content), err
}

// readText returns the text in a file that a flag names, without a byte order mark.
func readText(flag, file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, unreadableError(flag, err)
	}
	if content, err = access.Text(content); err != nil {
		return nil, usageError("%s: %s: %w", flag, file, err)
	}
	return content, nil
}

// readClientAccess returns the token and the TLS settings that clientAccessFlags give.
func readClientAccess(c *cli.Context) (creds dialog.Client, err error) {
	if creds.Token, err = readToken(c); err != nil {
		return creds, err
	}
	creds.TLS, err = readTLS(c, "tls")
	return creds, err
}

// readToken returns the token to send to a node: the first of several, or "" for none.
func readToken(c *cli.Context) (string, error) {
	where, text, err := readSecret(c, "token-file", tokenEnv)
	if err != nil || text == "" && where == tokenEnv {
		return "", err
	}
	tokens, err := access.ParseTokens(where, []byte(text))
	if err != nil {
		return "", usageError("%w", err)
	}
	return tokens[0].Text, nil
}

// readTLS returns what the flags with this prefix say, nil for plain TCP.
func readTLS(c *cli.Context, prefix string) (*tls.Config, error) {
	ca, cert, key, name := c.String(prefix+"-ca"), c.String(prefix+"-cert"), c.String(prefix+"-key"),
		c.String(prefix+"-server-name")
	wanted := ca+cert+key+name != ""
	if c.IsSet(prefix) && !c.Bool(prefix) && wanted {
		return nil, usageError("--%s is false, but other --%[1]s-... flags are given. Leave out --%[1]s=false or the "+
			"others", prefix)
	}
	if !c.Bool(prefix) && !wanted {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca != "" {
		pem, err := readText("--"+prefix+"-ca", ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usageError("--%s-ca: there is no PEM certificate in %s", prefix, ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, usageError("--%s-cert and --%[1]s-key: only one is given. Give both or neither", prefix)
	}
	if cert != "" {
		certPEM, err := readText("--"+prefix+"-cert", cert)
		if err != nil {
			return nil, err
		}
		keyPEM, err := readText("--"+prefix+"-key", key)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			return nil, usageError("--%s-cert and --%[1]s-key: %w", prefix, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// readServerAccess returns where the certificates and tokens of a node are: the files of serverAccessFlags, and the
// tokens in FLAKED_TOKEN. It reads no file.
func readServerAccess(c *cli.Context) (access.Config, error) {
	cfg := access.Config{Cert: c.String("tls-cert"), Key: c.String("tls-key"), ClientCA: c.String("tls-client-ca"),
		PeerTokenFile: c.String("peer-token-file"), PeerCA: c.String("peer-ca")}
	var err error
	if cfg.TokenFile, cfg.Token, err = readSecretSource(c, "token-file", tokenEnv); err != nil {
		return cfg, err
	}
	switch {
	case (cfg.Cert == "") != (cfg.Key == ""):
		return cfg, usageError("--tls-cert and --tls-key: only one is given. Give both or neither")
	case cfg.ClientCA != "" && cfg.Cert == "":
		return cfg, usageError("--tls-client-ca needs --tls-cert and --tls-key. Only a node with a certificate can " +
			"ask clients for theirs")
	case cfg.PeerCA != "" && cfg.Cert == "":
		return cfg, usageError("--peer-ca needs --tls-cert and --tls-key. Only a node with a certificate connects to " +
			"the others over TLS")
	}
	return cfg, nil
}
