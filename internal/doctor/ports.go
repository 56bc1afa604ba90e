package doctor

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// checkPorts judges for each address whether a node could listen there, or does. running: a node uses the
// state directory.
func checkPorts(cfg Config, running bool) []Finding {
	addresses := cfg.Listen
	if cfg.Admin != "" {
		addresses = append(addresses[:len(addresses):len(addresses)], [2]string{"admin", cfg.Admin})
	}
	found := make([]Finding, len(addresses))
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() { found[i] = checkPort(a[0], a[1], running) })
	}
	wg.Wait()
	return found
}

func checkPort(network, address string, running bool) Finding {
	flag := "--listen"
	if network == "admin" {
		network, flag = "tcp", "--admin"
	}
	return judgePort(flag, address, tryListen(network, address), running)
}

func judgePort(flag, address string, err error, running bool) Finding {
	f := Finding{Check: "ports", Level: Fail, Text: address + ": "}
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && running:
		f.Level, f.Text = OK, address+" is in use, and a node runs here"
	case errors.Is(err, syscall.EADDRINUSE):
		f.Text, f.Advice = address+" is already in use, and no node that is visible from here uses the state directory", "Choose another "+flag+", or stop the process (ss -lptn shows it)"
	case err == nil && running:
		f.Level, f.Text, f.Advice = Warn, address+" is free, though a node runs here", "The node is starting or stopping, or serves elsewhere. Give doctor the node's --config"
	case err == nil:
		f.Level, f.Text = OK, address+" is free to listen on"
	case errors.Is(err, fs.ErrPermission):
		f.Text, f.Advice = f.Text+"this user may not listen there", "Choose another "+flag+", or run doctor as the node's user"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		f.Text, f.Advice = f.Text+"this machine has no such address", "Choose another "+flag
	default:
		f.Text, f.Advice = f.Text+err.Error(), "Choose another "+flag
	}
	return f
}

// tryListen returns nil if a node could listen on address. That includes a Unix socket that
// refuses connections, which a node replaces.
func tryListen(network, address string) error {
	if network == "tcp" {
		l, err := net.Listen("tcp", address)
		if err == nil {
			err = l.Close()
		}
		return err
	}
	st, err := os.Lstat(address)
	if errors.Is(err, fs.ErrNotExist) {
		return writable(filepath.Dir(address))
	}
	if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSocket == 0 {
		return errors.New("there is a file of this name that is not a socket")
	}
	conn, err := net.Dial("unix", address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return writable(filepath.Dir(address)) // dead socket
	}
	if err != nil {
		return err
	}
	_ = conn.Close()
	return syscall.EADDRINUSE
}
