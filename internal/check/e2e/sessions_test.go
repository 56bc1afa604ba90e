package e2e

import (
	"regexp"
)

// These match the refusals of a node whose reserved bound has run out: for any reason, and because
// the process was suspended.
const ()

// session returns the ZooKeeper session of a worker's live lock, or 0 if there is no lock.
func (r *records) session(worker int) int64 {
	r.t.Helper()
	lock, _ := r.read(livePath(worker), nil)
	return lock.Owner
}

// failedOnlyBy ends the load. It fails the test if a request failed for a reason that does not
// match the regular expression.
func (l *load) failedOnlyBy(like string) {
	l.node.site.t.Helper()
	allowed := regexp.MustCompile("^(" + like + ")$")
	for _, failed := range l.end().failed {
		if !allowed.MatchString(failed) {
			l.node.site.t.Errorf("%s: %s", l.node.name, failed)
			return
		}
	}
}
