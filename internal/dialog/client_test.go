package dialog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flaked/flaked/ids"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDialSendsTheToken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	replies := make(chan string, 1)
	got := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			var line string
			fmt.Fscanf(nc, "AUTH %s\n", &line)
			got <- line
			io.WriteString(nc, <-replies)
			io.Copy(io.Discard, nc)
			nc.Close()
		}
	})
	defer wg.Wait()
	defer l.Close()
	const secret = "s3cret"
	c := Client{Token: secret}
	for reply, refused := range map[string]string{"OK\n": "", "OK\r\n": "",
		"-WRONGPASS wrong token\n": "-WRONGPASS wrong token", "-WRONGPASS\nOK\n": "-WRONGPASS",
		"hm\n": "reply is not from a flaked node", "OK\n7\n": "reply is not from a flaked node"} {
		replies <- reply
		nc, err := c.Dial(t.Context(), l.Addr().String())
		var no *ids.ReplyError
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused) ||
			errors.As(err, &no) != strings.HasPrefix(refused, "-")) {
			t.Errorf("%q: %v", reply, err)
		}
		if line := <-got; line != secret {
			t.Errorf("it brought %q", line)
		}
		if nc != nil {
			nc.Close()
		}
	}
	// Dial returns at the deadline if the node does not answer.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Dial(ctx, l.Addr().String()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("of a silent node: %v", err)
	}
	<-got
	replies <- ""
}
