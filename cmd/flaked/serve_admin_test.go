package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/ops/access"
)

func logTo(w io.Writer) hclog.InterceptLogger {
	return hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: w})
}

// A node needs the admin port that was asked for, but goes on without the default one.
func TestTakenDefaultAdminPortIsSkipped(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, row := range []struct {
		name     string
		o        options
		open     string // how the address in the node's record begins: https:// for TLS
		err, log string
	}{
		{"none", options{adminGiven: true}, "", "", ""},
		{"a free one", options{adminAddr: "127.0.0.1:0", adminGiven: true}, "127.0.0.1:", "", ""},
		{"with TLS", options{adminAddr: "0.0.0.0:0", adminTLS: true, advertise: "ids-1"}, "https://ids-1:", "", ""},
		{"a taken one", options{adminAddr: taken.Addr().String(), adminGiven: true}, "",
			"address already in use. Give each node", ""},
		{"a taken one that nobody asked for", options{adminAddr: taken.Addr().String()}, "", "",
			"the admin address is already in use"},
		{"no address", options{adminAddr: "127.0.0.1", adminGiven: true}, "", "--admin 127.0.0.1", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log bytes.Buffer
			p := &process{options: row.o, log: logTo(&log)}
			err := p.listenAdmin()
			l := p.adminListener
			if l != nil {
				defer l.Close()
			}
			if (l != nil) != (row.open != "") || (err == nil) != (row.err == "") || err != nil &&
				!strings.Contains(err.Error(), row.err) {
				t.Errorf("%v, %v", l, err)
			}
			if !strings.Contains(log.String(), row.log) || row.log == "" && log.Len() > 0 {
				t.Errorf("log: %s", log.String())
			}
			if row.open != "" { // with the port that was given for 0
				_, port, _ := net.SplitHostPort(l.Addr().String())
				inRecord := p.config().Node.Labels.Admin
				if inRecord != row.open+port || !strings.HasSuffix(p.boundAdminAddr, ":"+port) ||
					!strings.HasSuffix(p.adminHint(), p.adminURL(p.boundAdminAddr)) {
					t.Errorf("it is at %q, in the record at %q. %s", p.boundAdminAddr, inRecord, p.adminHint())
				}
			} else if err == nil && p.boundAdminAddr != "" {
				t.Errorf("it is at %q", p.boundAdminAddr)
			}
		})
	}
}

func TestPublicAdminPortIsRestricted(t *testing.T) {
	guard := func(token string) *access.Server {
		g, err := access.Load(access.Config{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, row := range []struct {
		name, addr, token string
		allowOpen         bool
		asks, closed      bool
		log               string
	}{
		{"this machine's own", "127.0.0.1:7610", "", false, false, false, ""},
		{"with a token", "127.0.0.1:7610", "secret", false, true, false, ""},
		{"for all", "0.0.0.0:7610", "", false, false, true, "serves only probes and /metrics"},
		{"for all, by its port alone", ":7610", "", false, false, true, "serves only probes and /metrics"},
		{"for all, meant so", "10.0.0.5:7610", "", true, false, false, ""},
		{"for all who have a token", "10.0.0.5:7610", "secret", false, true, false, "in the clear"},
		{"by TLS for all", "0.0.0.0:7610", "", false, false, true, "serves only probes and /metrics"},
		{"by TLS for all who have a token", "10.0.0.5:7610", "secret", false, true, false, ""},
		{"by TLS for all who have a certificate", "10.0.0.5:7610", "", false, false, false, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log bytes.Buffer
			p := &process{access: guard(row.token), log: logTo(&log), options: options{
				allowOpen: row.allowOpen, adminTLS: strings.HasPrefix(row.name, "by TLS")},
				ports: ports{boundAdminAddr: row.addr}}
			if strings.HasSuffix(row.name, "a certificate") {
				p.accessConfig.ClientCA = "customers.pem"
			}
			authenticate, closed := p.adminAccess()
			if (authenticate != nil) != row.asks || (closed != "") != row.closed {
				t.Errorf("asks for a token: %v; closed: %q", authenticate != nil, closed)
			}
			if !strings.Contains(log.String(), row.log) || row.log == "" && log.Len() > 0 {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}
