// Command goredis asks the node at the given address for IDs, as a program with
// go-redis would, and prints them one a line. It is a module of its own, so that flaked
// does not depend on go-redis.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, protocol := range []int{2, 3} {
		if err := talk(ctx, os.Args[1], protocol); err != nil {
			fmt.Fprintf(os.Stderr, "RESP%d: %v\n", protocol, err)
			os.Exit(1)
		}
	}
}

func talk(ctx context.Context, addr string, protocol int) error {
	c := redis.NewClient(&redis.Options{
		Addr: addr, Protocol: protocol, ClientName: "e2e", PoolSize: 8, MaxRetries: -1,
	})
	defer c.Close()

	id, err := c.Get(ctx, "order").Result()
	if err != nil {
		return fmt.Errorf("GET order: %w", err)
	}
	fmt.Println(id)
	if ids, err := c.Do(ctx, "GET", "order", "COUNT", 100).StringSlice(); err != nil || len(ids) != 100 {
		return fmt.Errorf("GET order COUNT 100: %d IDs, %w", len(ids), err)
	} else {
		fmt.Println(strings.Join(ids, "\n"))
	}
	ids, err := c.MGet(ctx, "a", "b", "c").Result()
	if err != nil || len(ids) != 3 {
		return fmt.Errorf("MGET: %v, %w", ids, err)
	}
	for _, id := range ids {
		fmt.Println(id.(string))
	}
	if n, err := c.Get(ctx, "42").Int64(); err != nil {
		return fmt.Errorf("an ID as an int64: %w", err)
	} else {
		fmt.Println(n)
	}

	replies, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range 1000 {
			p.Get(ctx, "order")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	for _, r := range replies {
		fmt.Println(r.(*redis.StringCmd).Val())
	}

	// An error within a pipeline concerns only its own request.
	replies, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, "before")
		p.Do(ctx, "GET", "order", "COUNT", 0)
		p.Get(ctx, "after")
		return nil
	})
	var refused redis.Error
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Error(), "ERR a count must be 1 to ") {
		return fmt.Errorf("COUNT 0: %w", err)
	}
	fmt.Println(replies[0].(*redis.StringCmd).Val())
	fmt.Println(replies[2].(*redis.StringCmd).Val())

	// More requests at once than the pool has connections.
	var wg sync.WaitGroup
	all := make(chan string, 32*50)
	for range 32 {
		wg.Go(func() {
			for range 50 {
				id, err := c.Get(ctx, "order").Result()
				if err != nil {
					id = err.Error()
				}
				all <- id
			}
		})
	}
	wg.Wait()
	close(all)
	for id := range all {
		fmt.Println(id)
	}

	if s, err := c.Ping(ctx).Result(); s != "PONG" || err != nil {
		return fmt.Errorf("PING: %q, %w", s, err)
	}
	if s, err := c.Echo(ctx, "a b").Result(); s != "a b" || err != nil {
		return fmt.Errorf("ECHO: %q, %w", s, err)
	}
	if t, err := c.Time(ctx).Result(); err != nil || time.Since(t).Abs() > time.Minute {
		return fmt.Errorf("TIME: %v, %w", t, err)
	}
	if s, err := c.ClientGetName(ctx).Result(); s != "e2e" || err != nil {
		return fmt.Errorf("CLIENT GETNAME: %q, %w", s, err)
	}
	if s, err := c.Info(ctx, "stats").Result(); err != nil || !strings.Contains(s, "\r\nids:") {
		return fmt.Errorf("INFO stats: %q, %w", s, err)
	}
	if s, err := c.Do(ctx, "DECODE", id).Text(); err != nil || !strings.HasPrefix(s, "id="+id+" ") {
		return fmt.Errorf("DECODE: %q, %w", s, err)
	}
	return nil
}
