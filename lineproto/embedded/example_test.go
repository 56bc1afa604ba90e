package embedded_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/lineproto/embedded"
)

// A program that serves the line protocol to programs beside it, as `flaked serve` does.
func Example() {
	ctx := context.Background()
	node, err := flaked.Open(ctx, flaked.Config{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	backend, sequences := embedded.Of(node)
	server, err := lineproto.New(lineproto.Config{Backend: backend, Sequences: sequences})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(serving, listener) }()
	defer func() { stop(); <-ended }()

	beside, err := client.New(client.Config{Addrs: []string{listener.Addr().String()}})
	if err != nil {
		log.Fatal(err)
	}
	defer beside.Close()
	theirs, err := beside.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	ours, err := node.Next(ctx)
	fmt.Println(theirs < ours, err)
	// Output: true <nil>
}
