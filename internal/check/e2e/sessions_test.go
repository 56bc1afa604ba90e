package e2e

// session returns the ZooKeeper session of a worker's live lock, or 0 if there is no lock.
func (r *records) session(worker int) int64 {
	r.t.Helper()
	lock, _ := r.read(livePath(worker), nil)
	return lock.Owner
}
