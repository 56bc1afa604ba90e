// shards keeps orders in several SQLite databases, by customer, with keys that are unique
// over all databases. The databases' own counters would give the same keys in each. It writes
// orders, finds the newest orders of all databases, and then copies all orders to another
// number of databases. No keys collide there.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	_ "modernc.org/sqlite"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/worker"
)

func main() {
	node := flag.String("flaked", client.DefaultAddr, "the flaked node: host:port or unix:/path")
	dir := flag.String("dir", "", "directory of the databases (empty: a new temporary directory)")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *node, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, node, dir string) error {
	ids, err := client.New(client.Config{Addrs: []string{node}})
	if err != nil {
		return err
	}
	defer ids.Close()
	if dir == "" {
		if dir, err = os.MkdirTemp("", "shards"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	four, err := open(ctx, dir, "four", 4)
	if err != nil {
		return err
	}
	defer four.close()
	three, err := open(ctx, dir, "three", 3)
	if err != nil {
		return err
	}
	defer three.close()

	began := time.Now()
	for round := range 10 {
		// All keys of a batch come with one request.
		keys, err := ids.Take(ctx, 100)
		if err != nil {
			return err
		}
		for i, key := range keys {
			o := order{ID: key, Customer: fmt.Sprintf("customer-%d", (round*100+i)%57), Cents: int64(100 + i)}
			if err := four.put(ctx, o); err != nil {
				return err
			}
		}
	}
	newest, err := four.newest(ctx, 3)
	if err != nil {
		return err
	}
	for _, o := range newest {
		fmt.Fprintf(out, "%s of %s, %d cents\n", o.ID, o.Customer, o.Cents)
	}
	// A key contains its time, so a search by time needs no further column.
	first, err := since(worker.Leaf(), began)
	if err != nil {
		return err
	}
	all, err := four.from(ctx, first)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d orders since the start, in 4 databases\n", len(all))

	for _, o := range all {
		if err := three.put(ctx, o); err != nil {
			return fmt.Errorf("copying order %s: %w", o.ID, err)
		}
	}
	moved, err := three.from(ctx, first)
	if err != nil {
		return err
	}
	if !slices.Equal(all, moved) {
		return errors.New("copied orders differ from the originals")
	}
	fmt.Fprintf(out, "%d orders in 3 databases, with the same keys\n", len(moved))
	return nil
}

type order struct {
	ID       worker.ID
	Customer string
	Cents    int64
}

// shards are databases that have the same table.
type shards []*sql.DB

func open(ctx context.Context, dir, name string, n int) (s shards, err error) {
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for i := range n {
		db, err := sql.Open("sqlite", filepath.Join(dir, fmt.Sprintf("%s-%d.db", name, i)))
		if err != nil {
			return s, err
		}
		s = append(s, db)
		// An example may lose its data in a crash.
		if _, err := db.ExecContext(ctx, `PRAGMA synchronous = OFF`); err != nil {
			return s, err
		}
		// An INTEGER PRIMARY KEY is SQLite's row ID. SQLite stores rows in the order of
		// these keys, so new orders are appended.
		if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL)`); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s shards) close() {
	for _, db := range s {
		_ = db.Close()
	}
}

// of returns the database that has all orders of a customer.
func (s shards) of(customer string) *sql.DB {
	h := fnv.New32a()
	_, _ = io.WriteString(h, customer)
	return s[h.Sum32()%uint32(len(s))]
}

func (s shards) put(ctx context.Context, o order) error {
	_, err := s.of(o.Customer).ExecContext(ctx, `INSERT INTO orders (id, customer, cents) VALUES (?, ?, ?)`, o.ID, o.Customer, o.Cents)
	return err
}

// newest returns the last n orders of all databases, the newest first.
func (s shards) newest(ctx context.Context, n int) ([]order, error) {
	all, err := s.query(ctx, `SELECT id, customer, cents FROM orders ORDER BY id DESC LIMIT ?`, n)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	return all[:min(n, len(all))], nil
}

// from returns the orders whose keys are first or greater, sorted by key.
func (s shards) from(ctx context.Context, first worker.ID) ([]order, error) {
	return s.query(ctx, `SELECT id, customer, cents FROM orders WHERE id >= ?`, first)
}

// query asks all databases, and returns their orders sorted by key.
func (s shards) query(ctx context.Context, query string, args ...any) ([]order, error) {
	var all []order
	for _, db := range s {
		rows, err := db.QueryContext(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var o order
			if err := rows.Scan(&o.ID, &o.Customer, &o.Cents); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			all = append(all, o)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b order) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// since returns the lowest ID that can have been made at time t or later.
func since(l worker.Layout, t time.Time) (worker.ID, error) {
	return l.Encode(worker.Fields{Tick: l.FloorTick(t.UnixMilli())})
}
