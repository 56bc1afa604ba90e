// Package client gets IDs, and values of named sequences, from flaked nodes.
//
//	source, err := client.New(client.Config{Addrs: []string{"unix:/run/flaked/flaked.sock", "ids.example.com"}})
//	...
//	defer source.Close()
//	id, err := source.Next(ctx)
//
// A Client is an ids.Source, like the node of package flaked. A program needs only one Client.
// Calls that arrive while a request is under way share the next request. A hundred goroutines that
// call Next need a few requests, not a hundred. Tests take an ids.Source without a network from package ids/idstest.
//
// # Failure
//
// A node fails if it cannot be reached, does not answer within Config.Timeout or answers
// with an error. Its calls go to the next node, and it is not asked for a while: 20 ms after
// the first failure, doubling up to 1 s, at random within ±50 %. A node whose clock went back
// says how long to wait. The client waits that long, but 5 s at most, because the node may
// take another worker before then. While other nodes answer, a failed node is probed before
// it gets calls again. A wrong request (-ERR) is not retried. Calls also fail at once if all
// nodes refuse for reasons that need an operator (-NOAUTH, -WRONGPASS, -WRONGNODE, -EXHAUSTED), or
// if the addresses belong to two clusters and Config.Cluster does not say which one is meant.
//
// A call ends with its context, so give the context a deadline. While other nodes are
// healthy, a silent node gets at most half of the time left before the next one is asked. A
// call fails at once if no node may be asked again before its deadline. A program whose nodes
// are all down therefore does not wait for each ID.
//
// IDs of a reply that is lost or cut short are not handed out. Asking again leaves a gap in
// the IDs, and never makes a duplicate.
//
// # Order
//
// While the same node answers and keeps its worker, an ID is greater than every ID that the
// node returned before the request, on any connection. The exception is a layout with a rollback
// field. IDs of different nodes are ordered only as far as the nodes' clocks agree, usually within
// milliseconds. So after a failover, and with Config.Spread, an ID may be lower than one before it.
//
// # Prefetching
//
// With Config.Prefetch, Next returns an ID that was requested earlier, in well under a
// microsecond. The ID may have been made up to Config.MaxAge before the call of Next, and its
// timestamp says so. It may be lower than an ID that another program got before the call. IDs
// older than MaxAge are discarded, and so are those that are left when the client is closed. A
// program that makes no calls prefetches nothing.
//
// # Named sequences
//
// Client.Sequence returns a named sequence, a counter that all nodes share: 1, 2, 3. If a node
// refuses one sequence, the client still asks it for IDs and for other sequences.
//
// An ordered sequence, and each section of a family, has one node as its owner. The client asks the owner itself if it
// is one of Config.Addrs, written as the node advertises it (host:port). Otherwise a node of Config.Addrs passes the
// request on. The client looks at the owner again every 10 s, and sooner if the owner fails. If the node that was asked
// does not know whether the owner has counted a value (reason=unknown), the call fails, and is not repeated.
package client

// Read the types pool, call, connWorker and node first. A Client has a pool for IDs and another one for values. A pool
// has the calls that wait, and the nodes. A call asks for numbers, for a caller or for a stock. A connWorker is a
// goroutine of a pool. It takes calls from pool.queue as one job, sends the job to a node, and settles the calls by its
// reply. A node is an address, and whether it may be asked.
//
// A call is in one place: the queue, a job, or a timer of retryLater. It is delivered once, or its caller has left.
//
// While calls are queued, a connWorker looks at the queue next: one that was woken, one whose timer runs, one that is
// settling, or one that has a job. For this, a connWorker that finds no job enters pool.idle before it releases
// pool.mu. A new call wakes an idle connWorker, but not while one is settling (pool.settling).
