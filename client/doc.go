// Package client gets IDs from flaked nodes.
//
//	ids, err := client.New(client.Config{Addrs: []string{"unix:/run/flaked/flaked.sock", "ids.example.com"}})
//	...
//	defer ids.Close()
//	id, err := ids.Next(ctx)
//
// One Client is for the whole of a program. Calls that come while another one's
// request is on the way go into the next request together, so that a hundred
// goroutines that call Next cost a few requests and not a hundred.
//
// # Failure
//
// A node that cannot be reached, that is silent for longer than Config.Timeout
// or that answers with an error is left alone for a while, from 20 ms to 1 s and
// at random within half of that, and its calls go to the next node. One whose
// clock went back says for how long, and is left alone so long, but 5 s at most:
// it may have taken another worker by then. While others do the work a node is
// probed before it is asked again. A request that is wrong (-ERR) is not tried
// again, and neither is one that every node refuses for what a person has to mend
// (-NOAUTH, -EXHAUSTED).
//
// A call ends with its context, so give it a deadline: half of the time that is
// left goes to a node that is silent before the next one is asked. It fails at
// once where no node may be asked again before the deadline, so that a program
// whose nodes are down is not slow in addition.
//
// IDs of a reply that is lost or cut short are not handed out: to ask again
// leaves a gap, and never makes a duplicate.
//
// # Order
//
// While one node is asked and keeps its worker, an ID is greater than all that
// the node answered with before it was asked for, by whichever connection. Between
// nodes, so after a failover and with Config.Spread, IDs are ordered as the nodes'
// clocks agree, within milliseconds mostly.
//
// # Asking ahead
//
// With Config.Prefetch Next takes an ID that is there already, in well under a
// microsecond. Such an ID was made up to Config.MaxAge before it is handed out,
// and its timestamp says so: do not read from it when something happened more
// precisely than that, and do not compare it with IDs that others got meanwhile.
// IDs that grow too old are thrown away, and so are those that are left at the
// end. A program that makes no calls asks for none.
//
// # Tests
//
// Package clienttest has a node for tests of programs that use this package.
package client
