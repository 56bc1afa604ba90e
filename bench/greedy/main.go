// Command greedy asks a node for more IDs than it makes and reads none, until it is killed. bench/fair.sh runs it
// beside clients that ask for one ID at a time.
package main

import (
	"flag"
	"log"
	"net"
	"strconv"
	"strings"
	"time"
)

// kept are the open connections. The garbage collector would close those that nobody refers to.
var kept []*net.TCPConn

func main() {
	port := flag.Int("port", 7609, "where the node listens on 127.0.0.1")
	conns := flag.Int("conns", 1000, "how many connections it keeps open")
	pipeline := flag.Int("pipeline", 1, "how many requests for 10,000 IDs it sends on each")
	resets := flag.Int("resets", 0, "how many connections a second it resets, and replaces by new ones")
	flag.Parse()
	request := []byte(strings.Repeat("GET 10000\n", *pipeline))
	for k := range *conns {
		kept = append(kept, ask(*port, request))
		if k%100 == 99 {
			time.Sleep(10 * time.Millisecond) // more at once than a node accepts would wait for a second
		}
	}
	if *resets == 0 {
		select {}
	}
	pace := time.NewTicker(time.Second / time.Duration(*resets))
	for k := 0; ; k = (k + 1) % *conns {
		<-pace.C
		_ = kept[k].Close()
		kept[k] = ask(*port, request)
	}
}

// ask returns a connection that has sent a request. Close resets it.
func ask(port int, request []byte) *net.TCPConn {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	check(err)
	_, err = conn.Write(request)
	check(err)
	check(conn.(*net.TCPConn).SetLinger(0))
	return conn.(*net.TCPConn)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
