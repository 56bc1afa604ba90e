package doctor

import (
	"errors"
	"io/fs"
	"net"
	"syscall"

	"github.com/flaked/flaked/coordinator"
)

// checkPorts judges for each address whether a node could listen there, or does. running: a node uses the
// state directory. If it says where it serves (own), doctor's own settings do not count.
func checkPorts(cfg Config, running bool, own coordinator.Labels) (found []Finding) {
	if running && own.Address != "" {
		text := "the node that runs here serves " + own.Address
		if own.Admin != "" {
			text += ", and its admin port is " + own.Admin
		}
		return []Finding{{Check: "ports", Level: OK, Text: text}}
	}
	for _, a := range cfg.Listen {
		f := judgePort("--listen", a[1], tryListen(a[0], a[1]), running)
		if a[0] == "tcp" {
			if err := cfg.Refuses(a[1]); err != nil {
				f.Level, f.Text, f.Advice = Fail, err.Error(), ""
			}
		}
		found = append(found, f)
	}
	if cfg.Admin != "" {
		found = append(found, judgePort("--admin", cfg.Admin, tryListen("tcp", cfg.Admin), running))
	}
	return found
}

func judgePort(flag, address string, err error, running bool) Finding {
	f := Finding{Check: "ports", Level: Fail, Text: address + ": "}
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && running:
		f.Level, f.Text = OK, address+" is in use, and a node runs here"
	case errors.Is(err, syscall.EADDRINUSE):
		f.Text, f.Advice = address+" is already in use, and no node that is visible from here uses the state "+
			"directory", "Choose another "+flag+", or stop the process (ss -lptn shows it)"
	case err == nil && running:
		f.Level, f.Text, f.Advice = Warn, address+" is free, though a node runs here",
			"The node is starting or stopping, or serves elsewhere. Give doctor the node's --config"
	case err == nil:
		f.Level, f.Text = OK, address+" is free to listen on"
	case errors.Is(err, fs.ErrPermission):
		f.Text, f.Advice = f.Text+"this user may not listen there", "Choose another "+flag+", or run doctor as the "+
			"node's user"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		f.Text, f.Advice = f.Text+"this machine has no such address", "Choose another "+flag
	default:
		f.Text, f.Advice = f.Text+err.Error(), "Choose another "+flag
	}
	return f
}

// tryListen returns nil if a node could listen on address, as far as is known. A node replaces a Unix
// socket that refuses connections, and says itself what is wrong with a path.
func tryListen(network, address string) error {
	if network == "tcp" {
		l, err := net.Listen("tcp", address)
		if err == nil {
			err = l.Close()
		}
		return err
	}
	if conn, err := net.Dial("unix", address); err == nil { // it asks nothing, so any process counts
		_ = conn.Close()
		return syscall.EADDRINUSE
	}
	return nil
}
