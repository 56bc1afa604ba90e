// Package chaos is the fault campaign: five nodes of the shipped binary on a real
// ZooKeeper ensemble of three, under load, while a seeded nemesis does to them
// what happens to nodes in the field, and worse. `make chaos` runs it for half an
// hour; `make test` runs the same for some seconds.
//
// Each node is a machine of its own: a wall clock that can be stepped while the
// process runs (internal/ownclock), a link to each ZooKeeper server that breaks
// on demand (internal/faultnet), and, for root, a file system of its own that
// fills up, becomes read-only and stalls (internal/faultdisk). A lane per machine
// makes one fault after the other there, whatever goes on elsewhere; another lane
// does the same to ZooKeeper. So faults of different machines overlap, and what a
// fault did is still known: each ends with the machine well again.
//
// Clients record every ID that they are answered, and every question that was
// not answered with one. In the end internal/judge looks at the IDs, and the
// campaign itself at the rest: a node must have served whatever went on, but for
// its own faults that stop it; and it must not have, where its clock was behind,
// its bound on the disk or its lease had ended.
//
// What a run did is in report.txt and report.html. The seed decides which faults
// come in which order with which figures; when exactly each hits is the
// machine's.
package chaos
