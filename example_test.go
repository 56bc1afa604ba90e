package flaked_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/ids/idstest"
)

// A program with a node of its own. InMemory is for this example: a real program sets ZooKeeper,
// Cluster and StateDir.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	node, err := flaked.Open(ctx, flaked.Config{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(context.Background())

	first, err := node.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	more, err := node.Take(ctx, 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first < more[0], more[0] < more[99], len(more))
	// Output: true true 100
}

// A node that may not give IDs refuses at once. The error says why in the words of the line
// protocol, which docs/troubleshooting.md explains.
func ExampleNode_Next_refused() {
	node, err := flaked.Start(flaked.Config{ZooKeeper: "127.0.0.1:1"}) // nothing listens there
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(context.Background())

	_, err = node.Next(context.Background())
	fmt.Println(errors.Is(err, ids.ErrUnavailable))
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		fmt.Println(reply.Code, reply.Reason())
	}
	// Output:
	// true
	// NOTREADY no-worker-yet
}

// A program takes an ids.Source. Its tests give it one without a node.
func ExampleNode_source() {
	newOrder := func(ctx context.Context, source ids.Source) (string, error) {
		id, err := source.Next(ctx)
		if err != nil {
			return "", err
		}
		number, err := source.Sequence("order").Next(ctx)
		return fmt.Sprintf("order %d, number %d", id, number), err
	}
	fmt.Println(newOrder(context.Background(), idstest.New()))
	// Output: order 1, number 1 <nil>
}
