//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/worker"
)

// webService leads to the pods of the example.
const webService = `apiVersion: v1
kind: Service
metadata: {name: webapp, namespace: ids}
spec: {selector: {app.kubernetes.io/name: webapp}, ports: [{port: 8080}]}
`

// TestSidecar plays with the example, whose pods each have a node of their own.
func TestSidecar(t *testing.T) {
	prepared(t)
	dir := t.TempDir()
	program, chart := filepath.Join(dir, "webapp"), filepath.Join(dir, "chart")
	run(t, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-o", program, "./examples/webapp")
	load(t, image{name: "localhost/webapp:one", user: "10001:10001", program: program, at: "usr/local/bin/webapp"})
	run(t, "cp", "-r", "examples/webapp/chart", chart)
	run(t, "mkdir", chart+"/charts")
	run(t, "cp", "-rL", "deploy/helm/flaked", chart+"/charts")
	r := install(t, "webapp", chart, "app.kubernetes.io/name=webapp", []string{
		"image=localhost/webapp:one", "flaked.image.repository=localhost/flaked", "flaked.image.tag=one",
		"flaked.zookeeper.servers=" + escaped(servers), "flaked.cluster.name=webapp"})
	_, err := fed(webService, "kubectl", "apply", "-f", "-")
	must(t, err)
	// Without the sequence, the example asks ZooKeeper for it with each order.
	r.kubectl(t, "exec", "deployment/webapp", "-c", "flaked", "--", "/usr/local/bin/flaked", "seq", "create", numbers)
	r.clients = newClients(r.site)
	r.clients.ordering("http://webapp.ids.svc.cluster.local:8080/orders")

	r.play(t, "sidecar, a pod deleted", func(t *testing.T) string {
		all, began := r.pods(t), time.Now()
		r.kubectl(t, "delete", "pod", names(all)[0])
		return fmt.Sprintf("ended after %s, replaced after %s", seconds(time.Since(began)), seconds(r.settled(t, began, "replaced")))
	})
	r.play(t, "sidecar, SIGKILL", func(t *testing.T) string {
		all, began := r.pods(t), time.Now()
		name := names(all)[0]
		all[name].signal(t, syscall.SIGKILL)
		return "ready after " + seconds(r.again(t, began, name, all[name]))
	})
	r.play(t, "sidecar, helm upgrade --set flaked.flags.log-level=debug", func(t *testing.T) string {
		return r.upgraded(t, "flaked.flags.log-level=debug")
	})
}

// ordering starts clients that order from the example. Each order has a connection of its own.
func (c *clients) ordering(address string) {
	n := c.site.Node()
	c.site.Values.Made(numbers, "scattered")
	web := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 {
		c.ask("orders over HTTP", func(ctx context.Context) (int, error) {
			return insist(ctx, func() error {
				a := harness.Answer{Node: uint16(n.ID), Asked: c.site.IDs.Now()}
				reply, err := web.PostForm(address, url.Values{"item": {"book"}})
				if err != nil {
					return err
				}
				defer reply.Body.Close()
				var o struct {
					ID     worker.ID
					Number int64
				}
				if err := json.NewDecoder(reply.Body).Decode(&o); err != nil || reply.StatusCode != http.StatusCreated {
					return fmt.Errorf("%s %v", reply.Status, err)
				}
				a.Got = c.site.IDs.Now()
				c.site.IDs.Record(a, o.ID)
				c.site.Values.Add(order.Request{Name: numbers, Node: n.ID, Sent: a.Asked, Answered: a.Got, First: o.Number, Last: o.Number})
				return nil
			})
		})
	}
}
