package e2e

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// manager takes the place of systemd and records the lines that it is sent.
type manager struct {
	path string

	mu   sync.Mutex
	told []string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "flaked-notify-") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{path: filepath.Join(dir, "notify")}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-ended
		os.RemoveAll(dir)
	})
	go func() {
		defer close(ended)
		buf := make([]byte, 4<<10)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.told = append(m.told, strings.Split(string(buf[:n]), "\n")...)
			m.mu.Unlock()
		}
	}()
	return m
}

func (m *manager) env() []string {
	return []string{"NOTIFY_SOCKET=" + m.path, "WATCHDOG_USEC=400000"}
}

// times returns the number of lines that match the regular expression.
func (m *manager) times(pattern string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	re := regexp.MustCompile("^(" + pattern + ")$")
	for _, line := range m.told {
		if re.MatchString(line) {
			n++
		}
	}
	return n
}

func (m *manager) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

// A node tells systemd when it serves, what its status is, that it is alive, and that it stops.
func TestSystemdIsToldOfANode(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	p := launchEnv(t, m.env(), "n", nil, shipped.binary(t), "serve", "--dev", "--listen", "127.0.0.1:0", "--admin", "off")
	eventually(t, "it has started", func() bool { return m.times("READY=1") == 1 })
	eventually(t, "it says what it does", func() bool { return m.times(`STATUS=serving worker 0, lease \w+`) > 0 })
	eventually(t, "it feeds the watchdog", func() bool { return m.times("WATCHDOG=1") > 3 })
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	eventually(t, "it stops", func() bool { return m.times("STOPPING=1") == 1 })
	told := m.all()
	if i := slices.Index(told, "STOPPING=1"); slices.Contains(told[i:], "WATCHDOG=1") || m.times("READY=1") != 1 {
		t.Errorf("told: %q", told)
	}
}

// TestAbortedNodeEndsBySignal: systemd's watchdog sends SIGABRT to a node that is stuck. The unit
// restarts a node that ends with any exit code but 2, with which a Go program ends by default.
func TestAbortedNodeEndsBySignal(t *testing.T) {
	t.Parallel()
	p := launch(t, "n", nil, shipped.binary(t), "serve", "--dev", "--listen", "127.0.0.1:0", "--log-format", "text")
	eventually(t, "the node serves", func() bool { return listening.MatchString(p.log()) })
	p.signal(syscall.SIGABRT)
	p.exit()
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGABRT {
		t.Errorf("SIGABRT ended the node with %v", p.cmd.ProcessState)
	}
}
