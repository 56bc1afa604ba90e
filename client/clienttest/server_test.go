package clienttest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flaked/flaked/client/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends request and QUIT on a new connection, and returns all replies with blanks in
// place of line breaks. It returns "refused" if it cannot connect.
func ask(t *testing.T, addr, request string) string {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return "refused"
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprintf(nc, "%s\nQUIT\n", request)
	all, err := io.ReadAll(bufio.NewReader(nc))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(all), "\n", " ")
}

func TestServer(t *testing.T) {
	s := clienttest.NewServer()
	defer s.Close()
	want := func(request, want string) {
		t.Helper()
		if got := ask(t, s.Addr, request); got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
	want("GET", "1 ")
	want("GET 3", "2 3 4 ")
	s.SetLast(99)
	want("GET", "100 ")
	s.RefuseNext(1, "FENCED", "lost its worker")
	want("READY", "-FENCED lost its worker ")
	want("GET", "-FENCED lost its worker ")
	want("GET", "101 ")
	s.Refuse("CLOCK", "retry_after_ms=7")
	want("GET", "-CLOCK retry_after_ms=7 ")
	want("GET 2", "-CLOCK retry_after_ms=7 ")
	s.Serve()
	s.CutReplies(5)
	want("GET 2", "102 1")
	s.Serve()
	s.Stop()
	want("GET", "refused")
	s.Start()
	want("GET", "104 ")
	if s.IDs() != 9 || s.Requests() != 9 {
		t.Errorf("%d IDs, %d requests", s.IDs(), s.Requests())
	}
}

func TestToken(t *testing.T) {
	s := clienttest.NewServerWithToken("secret")
	defer s.Close()
	if got := ask(t, s.Addr, "GET\nAUTH wrong\nAUTH secret\nGET"); !strings.HasPrefix(got, "-NOAUTH ") || !strings.HasSuffix(got, "OK 1 ") {
		t.Errorf("%q", got)
	}
}
