package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A node with neither certificates nor a token file logs SIGHUP and goes on.
func TestHangupDoesNotEndANode(t *testing.T) {
	kept := make(chan os.Signal, 1)
	signal.Notify(kept, syscall.SIGHUP) // keeps the test alive if the node does not
	defer signal.Stop(kept)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	log, w := io.Pipe()
	ended := make(chan int)
	go func() {
		code := run(ctx, []string{"flaked", "serve", "--dev", "--log-format", "text", "--admin", "off", "--listen",
			"127.0.0.1:0"}, strings.NewReader(""), io.Discard, w)
		w.Close()
		ended <- code
	}()
	found := false
	for lines := bufio.NewScanner(log); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.Contains(line, ": listening"):
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Error(err)
			}
		case strings.Contains(line, "nothing to read again"):
			found = true
			stop()
		}
	}
	if code := <-ended; code != exitOK || !found {
		t.Errorf("exit code %d, SIGHUP logged: %t", code, found)
	}
}
