package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/flaked/flaked/clusterview"
)

// lastSeen has the addresses of a cluster's nodes as of the last time that ZooKeeper
// was read. It is kept because nodes can still be asked when ZooKeeper cannot.
type lastSeen struct {
	// Connect and Cluster are --zk and --cluster.
	Connect string `json:"connect"`
	Cluster string `json:"cluster"`
	// SavedMs is when ZooKeeper was read, by this machine's clock.
	SavedMs int64 `json:"saved_ms"`
	// Left is the number of nodes that the file had no room for.
	Left  int                `json:"left"`
	Nodes []clusterview.Seen `json:"nodes"`
}

// seenIn returns what to keep of a report: workers whose nodes run, and stopped ones,
// whose nodes may be started again without ZooKeeper.
func seenIn(connect string, r clusterview.Report, now time.Time) lastSeen {
	last := lastSeen{Connect: connect, Cluster: r.Cluster.Name, SavedMs: now.UnixMilli()}
	for _, w := range r.Workers {
		if w.State == clusterview.Live || w.State == clusterview.Disconnected || w.State == clusterview.Stopped {
			last.Nodes = append(last.Nodes, clusterview.Seen{Worker: w.Worker, Name: w.Name, Node: w.Node, State: w.State, Host: w.Host, Address: w.Address, Admin: w.Admin})
		}
	}
	return last
}

// cachedAddresses returns the origin of addresses that were saved before now.
func cachedAddresses(last lastSeen, now time.Time) clusterview.Addresses {
	a := clusterview.Addresses{From: clusterview.FromCache, SavedMs: &last.SavedMs, Left: last.Left}
	if age := now.UnixMilli() - last.SavedMs; age >= 0 {
		a.AgeMs = &age
	}
	return a
}

// Bounds of the cache.
const (
	maxSeenBytes = 1 << 20 // of a file
	maxSeenFiles = 32      // one for each --zk and --cluster
)

// seenCache is a directory with a file for each cluster. A file that cannot be
// written or read is no error: it counts as missing.
type seenCache struct{ dir string }

// newSeenCache returns the cache in the user's cache directory. If there is no such
// directory it keeps nothing.
func newSeenCache() seenCache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return seenCache{}
	}
	return seenCache{filepath.Join(dir, "flaked", "nodes")}
}

const seenSuffix = ".json"

func (s seenCache) path(connect, cluster string) string {
	sum := sha256.Sum256([]byte(connect + "\n" + cluster))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+seenSuffix)
}

// load returns what was last saved for a cluster, if anything.
func (s seenCache) load(connect, cluster string) (last lastSeen, ok bool) {
	if s.dir == "" {
		return last, false
	}
	text, err := os.ReadFile(s.path(connect, cluster))
	if err != nil || len(text) > maxSeenBytes || json.Unmarshal(text, &last) != nil {
		return lastSeen{}, false
	}
	return last, last.Connect == connect && last.Cluster == cluster && last.SavedMs > 0
}

// save replaces what was saved for a cluster, atomically. Only this user can read it.
func (s seenCache) save(last lastSeen) {
	text, ok := encodeSeen(last)
	if !ok || s.dir == "" || os.MkdirAll(s.dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(s.dir, "new-*") // mode 0600
	if err != nil {
		return
	}
	_, err = f.Write(text)
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path(last.Connect, last.Cluster))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return
	}
	s.prune()
}

// encodeSeen returns the file's text. It drops nodes from the end until the rest has
// room.
func encodeSeen(last lastSeen) (text []byte, ok bool) {
	for {
		text, err := json.Marshal(last)
		switch {
		case err != nil || len(text) > maxSeenBytes && len(last.Nodes) == 0:
			return nil, false
		case len(text) <= maxSeenBytes:
			return text, true
		}
		keep := len(last.Nodes) / 2
		last.Left += len(last.Nodes) - keep
		last.Nodes = last.Nodes[:keep]
	}
}

// prune removes the oldest files beyond maxSeenFiles. A temporary file that a killed process
// left behind grows old and is removed, too.
func (s seenCache) prune() {
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) <= maxSeenFiles {
		return
	}
	type file struct {
		name string
		at   time.Time
	}
	var files []file
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, file{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return b.at.Compare(a.at) })
	for _, f := range files[min(maxSeenFiles, len(files)):] {
		_ = os.Remove(filepath.Join(s.dir, f.name))
	}
}
