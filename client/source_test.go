package client_test

import (
	"testing"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/ids/idstest"
)

var _ ids.Source = (*client.Client)(nil)

func TestClientIsASource(t *testing.T) {
	server := client.NewFakeNode()
	defer server.Close()
	c, err := client.New(client.Config{Addrs: []string{server.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	idstest.Conform(t, c, idstest.Sequences{Plain: "order", Strict: "invoice"})
}
