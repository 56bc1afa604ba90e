// Command http is the floor of HTTP: a bare net/http handler that repeats one reply of a node, its headers included.
//
//	http ADDRESS URL
package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	reply, err := http.Get(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		log.Fatal(reply.Status, err)
	}
	// net/http sets these two itself.
	reply.Header.Del("Date")
	reply.Header.Del("Content-Length")
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range reply.Header {
			w.Header()[name] = values
		}
		_, _ = w.Write(body)
	})))
}
