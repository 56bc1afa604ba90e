package words

import "testing"

// Errors of the Go library are printed in plain words.
func TestPlainErrorReplacesGoErrors(t *testing.T) {
	for text, want := range map[string]string{
		"no connection: dial tcp 127.0.0.1:2181: connect: connection refused": "no connection: connection refused " +
			"by 127.0.0.1:2181",
		"dial tcp [::1]:2181: connect: network is unreachable": "connecting to [::1]:2181: network " +
			"is unreachable",
		"dial tcp 10.0.0.1:2181: i/o timeout": "connecting to 10.0.0.1:2181: timed " +
			"out",
		"dial unix /run/a.sock: connect: no such file or directory": "socket /run/a.sock not found",
		"dial tcp: lookup zk1 on 1.1.1.1:53: no such host":          "host zk1 not found",
		"read tcp 127.0.0.1:5->127.0.0.1:2181: read: connection reset by peer": "connection to 127.0.0.1:2181: " +
			"connection reset by peer",
		"--listen 1.2.3.4:80: listen tcp 1.2.3.4:80: bind: permission denied": "--listen 1.2.3.4:80: permission " +
			"denied",
		"--config: open /etc/x.yaml: no such file or directory": "--config: file /etc/x.yaml not found",
		"--config: open /etc/x.yaml: permission denied": "--config: no permission to open " +
			"/etc/x.yaml",
		"ZooKeeper cannot be reached: sync /cluster: context deadline exceeded": "ZooKeeper cannot be reached: sync " +
			"/cluster: timed out",
	} {
		if got := PlainError(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
