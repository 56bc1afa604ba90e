package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/ids"
)

func newNode() *client.FakeNode { return client.NewFakeNode() } // of this package's tests

func Example() {
	node := newNode() // in production: unix:/run/flaked/flaked.sock
	defer node.Stop()

	source, err := client.New(client.Config{Addrs: []string{node.Addr}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	id, err := source.Next(ctx)
	fmt.Println(id, err)
	more, err := source.Take(ctx, 3)
	fmt.Println(more, err)
	// Output:
	// 1 <nil>
	// [2 3 4] <nil>
}

// The numbers of orders, for people.
func ExampleClient_Sequence() {
	node := newNode()
	defer node.Stop()
	source, err := client.New(client.Config{Addrs: []string{node.Addr}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	order := source.Sequence("order")
	fmt.Println(order.Next(ctx))
	fmt.Println(order.Range(ctx, 10))
	// Output:
	// 1 <nil>
	// 2 11 <nil>
}

// An error contains the last node's answer.
func Example_error() {
	node := newNode()
	defer node.Stop()
	source, err := client.New(client.Config{Addrs: []string{node.Addr}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()

	node.Refuse(1, "CLOCK", "the clock went back behind_ms=3000 retry_after_ms=3000")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = source.Next(ctx)
	fmt.Println(errors.Is(err, ids.ErrUnavailable))
	var reply *ids.ReplyError
	if errors.As(err, &reply) {
		fmt.Println(reply.Code, reply.RetryAfter())
	}
	// Output:
	// true
	// CLOCK 3s
}
