// webapp is a small service that takes orders. The keys of orders, their short numbers for people, and the IDs of
// requests come from flaked. It asks a node beside it, a sidecar, over a unix socket: ./run.sh starts both. A program
// that is a node itself gives newApp a *flaked.Node instead of a *client.Client.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/client/httpid"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	nodes := flag.String("flaked", "unix:/run/flaked/flaked.sock",
		"flaked nodes, separated by commas: the sidecar first")
	flag.Parse()

	log := slog.New(httpid.LogHandler(slog.NewJSONHandler(os.Stdout, nil), ""))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log, *listen, strings.Split(*nodes, ",")); err != nil {
		log.Error("stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, listen string, nodes []string) error {
	source, err := client.New(client.Config{Addrs: nodes, Logger: log})
	if err != nil {
		return err
	}
	defer source.Close()
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

// order is an order. Its ID is a string in JSON, because JavaScript's numbers cannot hold 64 bits. People call it by
// its number: a value of the sequence "order", if there is one.
type order struct {
	ID     worker.ID `json:"id"`
	Number int64     `json:"number,omitempty"`
	Item   string    `json:"item"`
}

type app struct {
	ids     ids.Source
	numbers ids.Sequence
	log     *slog.Logger
}

func newApp(source ids.Source, log *slog.Logger) (http.Handler, error) {
	a := &app{ids: source, numbers: source.Sequence("order"), log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", a.take)
	// Requests are served even if flaked does not answer. They get a random ID then.
	identify, err := httpid.New(httpid.Config{IDs: source})
	if err != nil {
		return nil, err
	}
	return identify(mux), nil
}

// take takes an order, which a real service would store. If flaked does not answer, it refuses the order, because no
// other key would be unique.
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
	a.log.InfoContext(r.Context(), "order taken", "order", id)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	// On an error the client has gone.
	_ = json.NewEncoder(w).Encode(order{ID: id, Number: number, Item: r.FormValue("item")})
}

// number returns the number of a new order, and 0 as long as nobody has created the sequence.
func (a *app) number(ctx context.Context) (int64, error) {
	n, err := a.numbers.Next(ctx)
	if e, ok := errors.AsType[*ids.ReplyError](err); ok && e.Reason() == "no-sequence" {
		return 0, nil
	}
	return n, err
}
