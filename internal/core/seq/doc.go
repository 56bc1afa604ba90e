// Package seq serves named sequences from records in ZooKeeper. A node takes blocks of positions by conditional writes,
// and issues from memory. docs/sequences.md says what is promised and why it holds. Marks like (S7) name its rules.
//
// The invariant: no position of a sequence is issued twice. Each write that takes positions checks that all it was
// decided by is unchanged. After a loss of data, the next block skips what may have been issued since, or an operator
// says where the sequence goes on.
//
// Three types to read:
//
//   - Issuer is all sequences of a node. Take issues values, or makes a request wait. Rounds keep it: all I/O of
//     ZooKeeper happens in Rounds.Round. For each series, work reads what a decision needs, decides, and makes one write.
//   - series is one sequence on the node: its record as last known, and the requests that wait. Its mode issues the
//     values: segment from a stock of positions, strict after each write, ordered while this node is the owner. decide
//     returns the step that is due, without I/O.
//   - knowledge is what the node knows of losses of data, as named phases.
//
// What stands in ZooKeeper, and the decisions that need nothing else, are in package record. Package ordered says who may
// count of an ordered sequence, and package mode what rounds and modes know of each other. The commands of people are in
// package operator, which a serving node does not link.
//
// The simulation (TestSimulation) plays random histories of nodes, operators and losses of data, and checks
// that no value is issued twice.
package seq
