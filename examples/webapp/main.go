// webapp is a small service that takes orders. The keys of orders, their short numbers for people, and the IDs of requests
// come from flaked. With --flaked it asks a node beside it, a sidecar, over a unix socket: ./run.sh starts both. With
// --zk it is a node itself. Only the function open knows the difference.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/client/httpid"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	nodes := flag.String("flaked", "unix:/run/flaked/flaked.sock", "flaked nodes, separated by commas: the sidecar first")
	zk := flag.String("zk", "", "ZooKeeper servers: run a node in this process, instead of asking those of --flaked")
	state := flag.String("state-dir", "", "state directory of the node in this process. Empty: a new node at each start")
	flag.Parse()

	log := slog.New(httpid.LogHandler(slog.NewJSONHandler(os.Stdout, nil), ""))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	source, end, err := open(ctx, *nodes, *zk, *state, log)
	if err == nil {
		err = run(ctx, log, *listen, source)
		end()
	}
	if err != nil {
		log.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// open returns where IDs come from, and a function that ends it.
func open(ctx context.Context, nodes, zk, state string, log *slog.Logger) (ids.Source, func(), error) {
	if zk == "" {
		c, err := client.New(client.Config{Addrs: strings.Split(nodes, ","), Logger: log})
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	n, err := flaked.Open(ctx, flaked.Config{ZooKeeper: zk, StateDir: state, Bootstrap: true, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	return n, func() { _ = n.Close(context.Background()) }, nil
}

func run(ctx context.Context, log *slog.Logger, listen string, source ids.Source) error {
	h, err := newApp(source, log)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(bounded)
	}()
	log.Info("serving", "addr", l.Addr().String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// order is an order. Its ID is a string in JSON, because JavaScript's numbers cannot hold
// 64 bits. Its number is what people call it by: a value of the sequence "order", if there is one.
type order struct {
	ID     worker.ID `json:"id"`
	Number int64     `json:"number,omitempty"`
	Item   string    `json:"item"`
}

// app keeps orders in memory.
type app struct {
	ids     ids.Source
	numbers ids.Sequence
	log     *slog.Logger

	mu     sync.Mutex // guards orders
	orders map[worker.ID]order
}

func newApp(source ids.Source, log *slog.Logger) (http.Handler, error) {
	a := &app{ids: source, numbers: source.Sequence("order"), log: log, orders: make(map[worker.ID]order)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", a.take)
	mux.HandleFunc("GET /orders/{id}", a.show)
	// Requests are served even if flaked does not answer. They get a random ID then.
	identify, err := httpid.New(httpid.Config{IDs: source})
	if err != nil {
		return nil, err
	}
	return identify(mux), nil
}

// take stores an order. If flaked does not answer, it refuses the order, because no other key
// would be unique.
func (a *app) take(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	id, err := a.ids.Next(ctx)
	var number int64
	if err == nil {
		number, err = a.number(ctx)
	}
	if err != nil {
		a.log.ErrorContext(r.Context(), "order refused: no ID or no number for it", "error", err)
		http.Error(w, "orders are unavailable. Retry.", http.StatusServiceUnavailable)
		return
	}
	o := order{ID: id, Number: number, Item: r.FormValue("item")}
	a.mu.Lock()
	a.orders[id] = o
	a.mu.Unlock()
	a.log.InfoContext(r.Context(), "order taken", "order", id)
	w.Header().Set("Location", "/orders/"+id.String())
	reply(w, http.StatusCreated, o)
}

// number returns the number of a new order, and 0 as long as nobody has created the sequence.
func (a *app) number(ctx context.Context) (int64, error) {
	n, err := a.numbers.Next(ctx)
	var reply *ids.ReplyError
	if errors.As(err, &reply) && reply.Reason() == "no-sequence" {
		return 0, nil
	}
	return n, err
}

func (a *app) show(w http.ResponseWriter, r *http.Request) {
	id, err := worker.ParseID(r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	o, ok := a.orders[id]
	a.mu.Unlock()
	if !ok {
		http.Error(w, fmt.Sprintf("order %s not found", id), http.StatusNotFound)
		return
	}
	reply(w, http.StatusOK, o)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // on an error the client has gone
}
