// Command goclients asks the node at the given address for IDs by rueidis, valkey-go and redigo, each
// with its defaults, and prints them one a line. It is a module of its own, so that flaked does not
// depend on them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, client := range []struct {
		name string
		talk func(ctx context.Context, addr string) error
	}{{"rueidis", byRueidis}, {"valkey-go", byValkey}, {"redigo", byRedigo}} {
		if err := client.talk(ctx, os.Args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", client.name, err)
			os.Exit(1)
		}
	}
}

// print prints n IDs.
func print(what string, ids []string, n int, err error) error {
	if err != nil || len(ids) != n {
		return fmt.Errorf("%s: %d IDs, %w", what, len(ids), err)
	}
	fmt.Println(strings.Join(ids, "\n"))
	return nil
}

// byRueidis prints 1 + 100 + 3 + 50 IDs.
func byRueidis(ctx context.Context, addr string) error {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ClientName: strings.Repeat("long", 25)})
	if err != nil {
		return err
	}
	defer c.Close()
	id, err := c.Do(ctx, c.B().Get().Key("order").Build()).ToString()
	if err := print("GET", []string{id}, 1, err); err != nil {
		return err
	}
	ids, err := c.Do(ctx, c.B().Arbitrary("GET", "order", "COUNT", "100").Build()).AsStrSlice()
	if err := print("GET order COUNT 100", ids, 100, err); err != nil {
		return err
	}
	ids, err = c.Do(ctx, c.B().Mget().Key("a", "b", "c").Build()).AsStrSlice()
	if err := print("MGET", ids, 3, err); err != nil {
		return err
	}
	var all rueidis.Commands
	for range 50 {
		all = append(all, c.B().Get().Key("order").Build())
	}
	ids = nil
	for _, r := range c.DoMulti(ctx, all...) {
		id, err := r.ToString()
		if err != nil {
			return fmt.Errorf("pipeline: %w", err)
		}
		ids = append(ids, id)
	}
	if err := print("pipeline", ids, 50, nil); err != nil {
		return err
	}
	// A cache of IDs would give one out twice.
	if id, err := c.DoCache(ctx, c.B().Get().Key("order").Cache(), time.Minute).ToString(); err == nil {
		return fmt.Errorf("it caches %s", id)
	}
	return nil
}

// byValkey prints 1 + 3 IDs.
func byValkey(ctx context.Context, addr string) error {
	c, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		return err
	}
	defer c.Close()
	id, err := c.Do(ctx, c.B().Get().Key("order").Build()).ToString()
	if err := print("GET", []string{id}, 1, err); err != nil {
		return err
	}
	ids, err := c.Do(ctx, c.B().Mget().Key("a", "b", "c").Build()).AsStrSlice()
	return print("MGET", ids, 3, err)
}

// byRedigo prints 1 + 100 + 3 + 3 IDs.
func byRedigo(_ context.Context, addr string) error {
	c, err := redis.Dial("tcp", addr, redis.DialClientName("e2e"), redis.DialDatabase(0))
	if err != nil {
		return err
	}
	defer c.Close()
	id, err := redis.String(c.Do("GET", "order"))
	if err := print("GET", []string{id}, 1, err); err != nil {
		return err
	}
	ids, err := redis.Strings(c.Do("GET", "order", "COUNT", 100))
	if err := print("GET order COUNT 100", ids, 100, err); err != nil {
		return err
	}
	ids, err = redis.Strings(c.Do("MGET", "a", "b", "c"))
	if err := print("MGET", ids, 3, err); err != nil {
		return err
	}
	for _, err := range []error{c.Send("MULTI"), c.Send("GET", "a"), c.Send("GET", "b"), c.Send("GET", "c")} {
		if err != nil {
			return err
		}
	}
	ids, err = redis.Strings(c.Do("EXEC"))
	if err := print("MULTI", ids, 3, err); err != nil {
		return err
	}
	if _, err := c.Do("GET", "order", "COUNT", 0); err == nil || !strings.HasPrefix(err.Error(), "ERR a count must be") {
		return errors.Join(errors.New("COUNT 0"), err)
	}
	return nil
}
