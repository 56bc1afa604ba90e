package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// checkPorts judges for each address whether a node could listen there, or does.
func checkPorts(ctx context.Context, cfg Config, dirs []stateDir) []Finding {
	running := false
	for _, d := range dirs {
		running = running || d.look.Locked
	}
	addresses := cfg.Listen
	if cfg.Admin != "" {
		addresses = append(addresses[:len(addresses):len(addresses)], [2]string{"admin", cfg.Admin})
	}
	found := make([]Finding, len(addresses))
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() { found[i] = checkPort(ctx, a[0], a[1], running) })
	}
	wg.Wait()
	return found
}

func checkPort(ctx context.Context, network, address string, running bool) Finding {
	flag, question := "--listen", "VERSION\n"
	if network == "admin" {
		network, flag, question = "tcp", "--admin", "HEAD /livez HTTP/1.0\r\n\r\n"
	}
	err := tryListen(network, address)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return judgePort(flag, address, err, running)
	}
	who := ""
	if reply, err := exchange(ctx, network, address, question); err == nil {
		who = recognise(reply)
	}
	if who == "" {
		return Finding{Check: "ports", Level: Fail, Text: address + " is already in use, and no flaked answers there", Advice: "Choose another " + flag + ", or stop the process (ss -lptn shows it)"}
	}
	f := Finding{Check: "ports", Level: OK, Text: fmt.Sprintf("%s is in use by %s", address, who)}
	if !running {
		f.Level, f.Text = Warn, f.Text+", which does not use this state directory as far as is visible from here"
		f.Advice = "A node started now needs another " + flag
	}
	return f
}

func judgePort(flag, address string, err error, running bool) Finding {
	f := Finding{Check: "ports", Level: Fail, Text: address + ": "}
	switch {
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

func exchange(ctx context.Context, network, address, question string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	by, _ := ctx.Deadline()
	_ = conn.SetDeadline(by)
	if _, err := io.WriteString(conn, question); err != nil {
		return "", err
	}
	var reply strings.Builder
	lines := bufio.NewReader(io.LimitReader(conn, 4<<10))
	for {
		line, err := lines.ReadString('\n')
		reply.WriteString(line)
		if err != nil || recognise(reply.String()) != "" {
			return reply.String(), nil
		}
	}
}

// recognise returns the name of the flaked that sent reply, or "". A flaked is known by its
// version, its refusal of a client without TLS or without a token, or its HTTP header.
func recognise(reply string) string {
	for line := range strings.Lines(reply) {
		line = strings.TrimSpace(line)
		if server, ok := strings.CutPrefix(line, "Server: flaked/"); ok {
			return "flaked " + server
		}
		if strings.HasPrefix(line, "flaked ") {
			return line
		}
		if strings.HasPrefix(line, "-NOAUTH ") || line == "-ERR this port requires TLS. Connect with TLS" {
			return "a flaked"
		}
	}
	return ""
}
