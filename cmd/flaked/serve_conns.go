package main

const (
	// mostConns is the most connections for IDs of a node.
	mostConns = 10_000
	// ownFiles is the number of files that a node needs besides connections for IDs: its log, its state, its
	// connections to ZooKeeper and those of its admin port.
	ownFiles = 42
	// refusedFiles is the most connections that the node holds for a moment, to answer that they are too many.
	refusedFiles = 256
)

// limitConns returns how many connections the node serves at once. It warns if the limit on open files
// allows fewer than usual.
func (p *process) limitConns() int {
	limit, known := openFiles()
	if !known {
		return mostConns
	}
	conns := connsWithin(limit)
	if conns < mostConns {
		p.log.Warn("this process may open few files, so it serves fewer connections: set LimitNOFILE= in the unit, or "+
			"ulimit -Hn in a shell",
			"files", limit, "max_conns", conns, "usual_max_conns", mostConns)
	}
	return conns
}

// connsWithin returns how many connections a process with this limit on open files can serve. If the limit is
// very low, connections for IDs get a quarter of it.
func connsWithin(limit uint64) int {
	const others = ownFiles + refusedFiles
	if limit > mostConns+others {
		return mostConns
	}
	return max(1, int(limit)-others, int(limit)/4)
}
