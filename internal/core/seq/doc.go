// Package seq serves named sequences from records in ZooKeeper. A node takes blocks of positions by
// conditional writes, and issues from memory. docs/sequences.md says what is promised and why it holds.
//
// Where to begin reading:
//
//   - Issuer (issuer.go) is all sequences of a node. Take issues values, or makes a request wait. refusal.go has the
//     words for a request that gets none.
//   - series (series.go) is one sequence of the node: its record as last known, and the requests that wait. Its mode
//     (mode.go) issues the values: segment (segment.go) from a stock of positions, strict (strict.go) after each write,
//     ordered (ordered.go) while this node is the owner. keys.go has the keys of requests, secret.go those of salted
//     and scattered sequences.
//   - The ordered mode has more files. lease.go says how long an owner may issue, and counters.go has what it issues.
//     pass.go passes requests on to the owner. placement.go says which node should be the owner. family.go divides the
//     names of a family into sections. renew.go renews many records in one transaction.
//   - Run calls Round (round.go) at each heartbeat, and when an alarm rings (renew.go): a stock runs low, or a request
//     waits. All calls of ZooKeeper happen in Round, but for those of giveBack (rest.go) after the last Round, and
//     those of an Operator. For each series, work (work.go) reads what a decision needs, decides, and makes one write:
//     a step.
//   - step.go and decide.go have the decisions. They do no I/O: what a record that was read shows, what to put back,
//     which block to take.
//   - journal.go has the file that keeps the stocks over a restart, bound.go moves the bounds up to which they may be
//     issued, and rest.go ends them. witness.go has the file that remembers the records.
//   - loss.go follows the changes of operators, and says what a loss of data is to a node. restore.go puts back what
//     the node knows better. time.go keeps the sequence time.
//   - Operator (operator.go) has the commands of people. guard.go makes a change wait for the nodes, lives.go says what
//     a deleted name leaves to its next life, and template.go has the sequences that nodes create themselves.
//
// Marks like (S7) name the rules of docs/sequences.md.
//
// The simulation (TestSimulation) plays random histories of nodes, operators and losses of data, and checks
// that no value is issued twice.
package seq
