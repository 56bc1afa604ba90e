package clients

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"testing"
)

// The programs of examples, each with two addresses: one where no node listens, and one
// of a node.

func TestPythonExample(t *testing.T) {
	t.Parallel()
	python, err := withRedisPy()
	require(t, "redis-py", err)
	testExample(t, python, "../../../examples/python/ids.py")
}

// withRedisPy returns a Python that has redis-py. Debian's package is for Debian's
// Python, and another Python may be before it on PATH.
func withRedisPy() (python string, err error) {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		path, missing := exec.LookPath(name)
		if missing == nil {
			missing = exec.Command(path, "-c", "import redis").Run()
		}
		if missing == nil {
			return path, nil
		}
		err = errors.Join(err, missing)
	}
	return "", err
}

func TestJavaScriptExample(t *testing.T) {
	t.Parallel()
	node := program(t, "node")
	_, err := os.Stat("../../../examples/node/node_modules")
	require(t, "ioredis", err)
	testExample(t, node, "../../../examples/node/ids.js")
}

func testExample(t *testing.T, command ...string) {
	t.Helper()
	host, port := serve(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	ids(t, run(t, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, command[0],
			append(command[1:], "1000", nobody, net.JoinHostPort(host, port))...)
	}), 1000)
}
