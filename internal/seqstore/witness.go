package seqstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"slices"
)

// Witness is what a node remembers of /seq and of the records over a restart. A loss of data shows by
// it. It permits the node to issue nothing.
type Witness struct {
	State   State             `json:"state"`
	Records map[string]Record `json:"records"`
}

// witness returns what the node knows now. ok is false if it has not read /seq.
func (i *Issuer) witness() (w Witness, ok bool) {
	if i.state == nil || i.loss {
		return Witness{}, false
	}
	w = Witness{State: *i.state, Records: make(map[string]Record)}
	for _, s := range i.list() {
		s.mu.Lock()
		if s.known != nil {
			r := *s.known
			r.Next = max(r.Next, s.highest)
			w.Records[s.name] = r
		}
		s.mu.Unlock()
	}
	return w, true
}

// remember takes over what an earlier process of this node has saved. It must be called before Round.
func (i *Issuer) remember(w Witness) {
	i.state, i.link.epoch = &w.State, w.State.Epoch
	for _, name := range slices.Sorted(maps.Keys(w.Records)) {
		s := i.named(name)
		s.stale, s.epoch = true, w.State.Epoch
		s.know(w.Records[name])
	}
}

// loadWitness reads a witness. A file that is missing or damaged is as good as none: other nodes
// remember, too.
func loadWitness(path string) (w Witness, ok bool) {
	data, err := os.ReadFile(path)
	sum, data, _ := bytes.Cut(data, []byte("\n"))
	if err != nil || string(sum) != checksum(data) || json.Unmarshal(data, &w) != nil || w.State.Epoch < 1 || w.State.Cluster == "" {
		return Witness{}, false
	}
	for _, r := range w.Records {
		if r.Map.Check() != nil || r.Settings.Check() != nil || r.Gen < 1 || r.Next < 0 {
			return Witness{}, false
		}
	}
	return w, true
}

// saveWitness replaces the file. It does not wait for the disk: an older witness is good, too.
func saveWitness(path string, w Witness) error {
	data := mustMarshal(w)
	if err := os.WriteFile(path+".new", append([]byte(checksum(data)+"\n"), data...), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// checksum returns the first line of a witness file. A damaged file could put back a wrong next position.
func checksum(data []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(data)) }
