package embedded_test

import (
	"context"
	"fmt"
	"log"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/lineproto/embedded"
)

// A program that serves the line protocol to programs beside it, as `flaked serve` does.
func Example() {
	node, err := flaked.Open(context.Background(), flaked.Config{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(context.Background())
	backend, sequences := embedded.Of(node)
	server, err := lineproto.New(lineproto.Config{Backend: backend, Sequences: sequences})
	if err != nil {
		log.Fatal(err)
	}
	_ = server // server.Serve(ctx, listener) answers until ctx is done
	fmt.Println(backend.Ready())
	// Output: <nil>
}
