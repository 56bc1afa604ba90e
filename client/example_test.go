package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/client/clienttest"
)

func Example() {
	node := clienttest.NewServer() // a real one: unix:/run/flaked/flaked.sock, say
	defer node.Close()

	ids, err := client.New(client.Config{Addrs: []string{node.Addr}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ids.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	id, err := ids.Next(ctx)
	fmt.Println(id, err)
	more, err := ids.Take(ctx, 3)
	fmt.Println(more, err)
	// Output:
	// 1 <nil>
	// [2 3 4] <nil>
}

// With several nodes the first that answers is asked.
func Example_failover() {
	first, second := clienttest.NewServer(), clienttest.NewServer()
	defer first.Close()
	defer second.Close()
	second.SetLast(1000)
	ids, err := client.New(client.Config{Addrs: []string{first.Addr, second.Addr}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ids.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(ids.Next(ctx))
	first.Stop() // as kill -9
	fmt.Println(ids.Next(ctx))
	// Output:
	// 1 <nil>
	// 1001 <nil>
}

// What an error says about why there is no ID.
func ExampleReplyError() {
	node := clienttest.NewServer()
	defer node.Close()
	ids, err := client.New(client.Config{Addrs: []string{node.Addr}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ids.Close()

	node.Refuse("CLOCK", "the clock went back behind_ms=3000 retry_after_ms=3000")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = ids.Next(ctx)
	fmt.Println(errors.Is(err, client.ErrUnavailable))
	var reply *client.ReplyError
	if errors.As(err, &reply) {
		fmt.Println(reply.Code, reply.RetryAfter())
	}
	// Output:
	// true
	// CLOCK 3s
}
