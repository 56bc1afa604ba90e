//go:build linux

// Package cluster installs the charts with Helm in a real Kubernetes cluster, and does to them what happens there:
// pods are deleted, killed and moved, releases are upgraded, machines are lost. Meanwhile clients of several kinds ask
// all the time and keep every ID and value. The site judges them at the end.
//
// `make cluster` builds the cluster's programs and starts it. The tests run beside its control plane, and reach pods
// and Services like a pod does. Without it they are skipped, and say so.
package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

const (
	files   = "/run/cluster" // of scripts/cluster.sh
	server  = "https://10.200.0.1:6443"
	ids     = "ids" // the namespace of a test's release
	servers = "zk-0.zk.default:2181,zk-1.zk.default:2181,zk-2.zk.default:2181"
	secured = "zk-0.zk.default:2281,zk-1.zk.default:2281,zk-2.zk.default:2281" // with TLS
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.RemoveBuilds()
	os.Exit(code)
}

// needs skips the test unless it runs in a cluster.
func needs(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(files, "admin.conf")); os.Getenv("FLAKED_TEST_CLUSTER") == "" || err != nil {
		t.Skip("needs a Kubernetes cluster: make cluster starts one")
	}
}

// run runs a program, and returns what it prints.
func run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := try(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func try(args ...string) (string, error) { return fed("", args...) }

// fed runs a program with an input, for ten minutes at most.
func fed(input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = "../../..", strings.NewReader(input), zktest.DieWithUs()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// api returns the client of the API server.
var api = sync.OnceValues(func() (*http.Client, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(files, "admin.crt"), filepath.Join(files, "admin.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(files, "ca.crt"))
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: x509.NewCertPool()}
	settings.RootCAs.AppendCertsFromPEM(authority)
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: settings}}, nil
})

// pod is one pod of a release, as the API server sees it.
type pod struct {
	uid       string
	container string // the ID of flaked's container, "" for none
	node      string
	ready     bool
	leaving   bool
	waits     string // why the container does not run
	message   string // of the container that ended before
}

// pods returns the pods of a namespace that have a label, by name.
func pods(t testing.TB, namespace, label string) map[string]pod {
	t.Helper()
	c, err := api()
	must(t, err)
	reply, err := c.Get(server + "/api/v1/namespaces/" + namespace + "/pods?labelSelector=" + label)
	must(t, err)
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	must(t, err)
	type status struct {
		Name        string
		ContainerID string
		State       struct{ Waiting struct{ Reason string } }
		LastState   struct{ Terminated struct{ Message string } }
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name, UID, DeletionTimestamp string }
			Spec     struct{ NodeName string }
			Status   struct {
				Conditions                               []struct{ Type, Status string }
				ContainerStatuses, InitContainerStatuses []status
			}
		}
	}
	if err := json.Unmarshal(body, &list); err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("pods: %s %v\n%.300s", reply.Status, err, body)
	}
	found := map[string]pod{}
	for _, item := range list.Items {
		p := pod{uid: item.Metadata.UID, node: item.Spec.NodeName, leaving: item.Metadata.DeletionTimestamp != ""}
		for _, c := range item.Status.Conditions {
			p.ready = p.ready || c.Type == "Ready" && c.Status == "True"
		}
		for _, c := range append(item.Status.InitContainerStatuses, item.Status.ContainerStatuses...) {
			if c.Name == "flaked" {
				p.container, p.waits, p.message = c.ContainerID, c.State.Waiting.Reason, c.LastState.Terminated.Message
			}
		}
		found[item.Metadata.Name] = p
	}
	return found
}

// processes returns the processes of a control group and of those below it. part is in the path of the groups.
func processes(group, part string) (all []int) {
	_ = filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" || !strings.Contains(path, part) {
			return nil // groups come and go
		}
		members, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(members)) {
			if id, err := strconv.Atoi(word); err == nil {
				all = append(all, id)
			}
		}
		return nil
	})
	return all
}

// process returns the process ID of flaked in a pod.
func (p pod) process(t testing.TB) int {
	t.Helper()
	for _, id := range processes("/sys/fs/cgroup/pids/flaked-"+p.node, p.uid) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id)); string(name) == "flaked\n" {
			return id
		}
	}
	t.Fatalf("no process of flaked in the pod %s", p.uid)
	return 0
}

// signal sends a signal to flaked in a pod.
func (p pod) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	must(t, syscall.Kill(p.process(t), s))
}

// member returns the process ID of a program of the cluster, such as kubelet-n1.
func member(t testing.TB, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(files, "pid", name))
	must(t, err)
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	return id
}

// prepared loads the images into all nodes, and starts ZooKeeper. All tests share it.
func prepared(t testing.TB) {
	t.Helper()
	needs(t)
	if _, err := try("kubectl", "get", "statefulset", "zk"); err == nil {
		return
	}
	run(t, "kubectl", "create", "namespace", ids)
	flaked := harness.Shipped.Binary(t)
	load(t, image{name: "localhost/pause:1", user: "65535:65535", program: filepath.Join(os.Getenv("FLAKED_TEST_CLUSTER"), "pause"), at: "pause"})
	for _, tag := range []string{"one", "two"} {
		load(t, image{name: "localhost/flaked:" + tag, user: "65532:65532", program: flaked, at: "usr/local/bin/flaked", command: "serve"})
	}
	zookeepers(t)
}
