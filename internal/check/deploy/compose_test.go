package deploy

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// The addresses that docker-compose.yml publishes.
var composeNodes = map[string]string{"flaked1": "127.0.0.1:7609", "flaked2": "127.0.0.1:7610",
	"flaked3": "127.0.0.1:7611"}

// composeProject keeps the test's containers and volumes apart from those of people.
const composeProject = "flaked-test"

func compose(t testing.TB, args ...string) {
	t.Helper()
	do(t, append([]string{"podman-compose", "-p", composeProject}, args...)...)
}

// inService returns the name that podman-compose gives the container of a service.
func inService(service string) string { return composeProject + "_" + service + "_1" }

// composeUp starts the services. They end with the test.
func composeUp(t *testing.T) {
	t.Helper()
	down := func(ctx context.Context) error {
		_, err := try(ctx, ".", "podman-compose", "-p", composeProject, "down", "--volumes", "--timeout", "20")
		// podman-compose 1.0.3 leaves the network.
		_, _ = try(ctx, ".", "podman", "network", "rm", "--force", composeProject+"_default")
		return err
	}
	_ = down(t.Context()) // of a test that was killed, which may still use the ports
	for service, address := range composeNodes {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			conn.Close()
			t.Fatalf("%s is in use, and docker-compose.yml publishes %s there. Stop it", address, service)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			for service := range composeNodes {
				out, err := try(context.Background(), ".", "podman", "logs", "--tail", "20", inService(service))
				t.Logf("log of %s: %v\n%s", service, err, out)
			}
		}
		if err := down(context.Background()); err != nil {
			t.Errorf("down --volumes: %v", err)
		}
	})
	compose(t, "up", "--detach")
}

// TestComposeFile runs docker-compose.yml: three ZooKeepers and three nodes. It kills a ZooKeeper
// and a node, and removes the volume of another node.
//
// podman-compose 1.0.3 ignores `condition: service_healthy` and starts all at once, and breaks
// the words of a health check apart, so the test runs both health checks itself.
func TestComposeFile(t *testing.T) {
	needsImage(t)
	needsNetwork(t)
	composeUp(t)
	workers := map[string]string{}
	for service, address := range composeNodes {
		ready(t, address)
		workers[service] = workerOf(t, address)
		podman(t, "exec", inService(service), "/usr/local/bin/flaked", "healthcheck")
	}
	for _, zk := range []string{"zk1", "zk2", "zk3"} {
		podman(t, "exec", inService(zk), "bash", "-c",
			"exec 3<>/dev/tcp/127.0.0.1/2181 && printf srvr >&3 && grep -q Mode: <&3")
	}
	ids := collect(t, composeNodes["flaked1"], composeNodes["flaked2"], composeNodes["flaked3"])
	all := func() {
		t.Helper()
		for _, address := range composeNodes {
			ids.more(t, address)
		}
	}
	all()
	// The command of the file's first lines, with the environment of its services.
	status := podman(t, "exec", inService("flaked1"), "/usr/local/bin/flaked", "status")
	for service := range composeNodes {
		if !strings.Contains(status, service) {
			t.Errorf("status does not name %s:\n%s", service, status)
		}
	}

	podman(t, "kill", "--signal", "KILL", inService("zk1"))
	all()
	podman(t, "kill", "--signal", "KILL", inService("flaked2"))
	podman(t, "wait", inService("flaked2"))
	ids.more(t, composeNodes["flaked1"])
	podman(t, "start", inService("flaked2"))
	ids.more(t, composeNodes["flaked2"])
	podman(t, "start", inService("zk1"))
	hasWorker(t, composeNodes["flaked2"], workers["flaked2"], "kill -9")

	// Without its volume a node is a new one.
	podman(t, "rm", "--force", "--time", "20", inService("flaked3"))
	podman(t, "volume", "rm", composeProject+"_flaked3-state")
	compose(t, "up", "--detach", "--no-recreate", "flaked3")
	ids.more(t, composeNodes["flaked3"])
	now := workerOf(t, composeNodes["flaked3"])
	if now == workers["flaked3"] {
		t.Errorf("flaked3 has worker %s again, with an empty volume", now)
	}
	workers["flaked3"] = now

	// `down` keeps the volumes, and so the nodes' identities.
	compose(t, "down", "--timeout", "20")
	compose(t, "up", "--detach")
	all()
	for service, address := range composeNodes {
		hasWorker(t, address, workers[service], "down and up")
	}
	ids.unique(t)
}
