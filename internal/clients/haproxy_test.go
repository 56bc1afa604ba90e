package clients

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// HAProxy with the settings of docs/deployment.md uses the node that is ready and no other.
func TestHAProxy(t *testing.T) {
	haproxy := program(t, "haproxy")
	text, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "## Behind HAProxy\n")
	_, config, begins := strings.Cut(after, "\n    listen flaked\n")
	config, _, ends := strings.Cut(config, "\n\n")
	if !found || !begins || !ends {
		t.Fatal("docs/deployment.md has no settings of HAProxy")
	}
	host, port := serve(t)
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	front := free()
	config = "listen flaked\n" + strings.NewReplacer("bind :7609", "bind "+front, "10.0.0.1:7609", free(), "10.0.0.2:7609", net.JoinHostPort(host, port)).Replace(config) + "\n"
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, haproxy, "-db", "-f", file)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	// The first server is down, so each second connection fails until the check has noticed.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for row := 0; row < 10; <-tick.C {
		if row++; !answersThrough(front) {
			row = 0
		}
		if ctx.Err() != nil {
			t.Fatal("not all connections through HAProxy are answered")
		}
	}
}

// answersThrough reports whether the node at addr answers a GET.
func answersThrough(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	fmt.Fprint(c, "GET\n")
	var id int64
	_, err = fmt.Fscan(c, &id)
	return err == nil && id > 0
}
