package seq

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/seq/losses"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/seq/strict"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// Witness has a node's memory of /cluster, /seq and the records over a restart. A loss of data shows by it. By it alone
// the node issues nothing.
type Witness struct {
	losses.Memory
	// Boot is the boot of the machine in which the moments of Memory were measured.
	Boot string `json:"boot"`
	// Records are the records of sequences by name. They are immutable. Each is an entry of the file.
	Records map[string]*record.Record `json:"-"`
	// RequestKeys are the request keys, by the name of the strict sequence, as they are in ZooKeeper. Each is an entry
	// of the file.
	RequestKeys map[string][]byte `json:"-"`
	// Met are the other nodes that this one has met.
	Met []coordinator.Peer `json:"met,omitempty"`
}

// witnessName is the name of the witness file in the state directory.
const witnessName = "sequences.cache"

// witness returns what the node knows now. ok is false if it has not settled since ZooKeeper lost data (S36), or has
// not compared all records.
func (rs *Rounds) witness() (w Witness, ok bool) {
	memory, ok := rs.follower.losses.Memory()
	if !ok {
		return Witness{}, false
	}
	w = Witness{
		Memory: memory, Boot: rs.issuer.cfg.Boot,
		Records: make(map[string]*record.Record), RequestKeys: make(map[string][]byte),
	}
	if rs.issuer.cfg.Met != nil {
		w.Met = rs.issuer.cfg.Met()
	}
	for _, s := range rs.issuer.series.list() {
		s.Mu.Lock()
		if s.Known != nil {
			w.Records[s.Name] = s.Known
			if s.highest > s.Known.Next {
				w.Records[s.Name] = new(s.Known.Raised(s.highest))
			}
			ok = ok && !(s.Stale && s.incarnation < w.Incarnation)
			if keys := s.requestKeys(); len(keys) > 0 {
				w.RequestKeys[s.Name] = (&record.RequestKeys{Entries: keys}).Marshal()
			}
		}
		s.Mu.Unlock()
	}
	return w, ok
}

// saver writes the witness file beside the rounds, so that a disk that hangs delays no values.
type saver struct {
	file witnessFile
	// write is that of file, and inBackground calls it in another goroutine. A test may replace them.
	write        func(Witness) error
	inBackground func(func())
	ended        chan error // the result of the write that progress.saving tells of, with capacity 1
}

// saveWitness begins to write the witness file, if that is due when the node has followed to f.
func (rs *Rounds) saveWitness(f *following) {
	now := rs.issuer.now()
	if !rs.issuer.progress.Load().saveDue(f, now) {
		return
	}
	w, ok := rs.witness()
	if !ok {
		return
	}
	rs.issuer.publish(func(p *progress) { p.beginSave(f, now) })
	rs.saver.inBackground(func() {
		rs.saver.ended <- rs.saver.write(w)
		rs.issuer.Wake()
	})
	rs.endSave()
}

// endSave notes the result of a write of the witness file that has ended.
func (rs *Rounds) endSave() {
	select {
	case err := <-rs.saver.ended:
		if err != nil {
			rs.issuer.noteDirFailure(err)
			rs.issuer.cfg.Log.Warn("sequences: could not save what this node knows of the records, "+
				"so it does not report the changes that it has followed", "error", err)
		}
		rs.issuer.publish(func(p *progress) { p.endSave(err == nil, rs.follower.following()) })
	default:
	}
}

// saveLast writes the witness file when no more rounds follow. A node that stops soon after a loss of data has no newer
// witness. Then it puts the nodes that it has met into the file that is there, because operators need to know them.
func (rs *Rounds) saveLast() {
	w, ok := rs.witness()
	saving := rs.issuer.progress.Load().saving != nil
	err := rs.inTime(func() error {
		if saving {
			<-rs.saver.ended
		}
		if met := rs.issuer.cfg.Met; !ok && met != nil {
			w, ok = rs.saver.file.load()
			w.Met = met()
		}
		if !ok {
			return nil
		}
		return rs.saver.write(w)
	})
	if err != nil {
		rs.issuer.cfg.Log.Warn("sequences: could not save what this node knows of the records", "error", err)
	}
}

// recallWitness applies what an earlier process of this node has saved. It must be called before Round.
func (rs *Rounds) recallWitness(w Witness) {
	sameBoot := w.Boot != "" && w.Boot == rs.issuer.cfg.Boot
	since := func(m timeguard.Moment) timeguard.Moment { return rs.issuer.cfg.Elapsed.Rebase(m, sameBoot) }
	w.Trusted.Sent, w.Last.Sent = since(w.Trusted.Sent), since(w.Last.Sent)
	if w.Entered != nil {
		w.Entered = new(since(*w.Entered))
	}
	rs.follower.losses = losses.Recall(w.Memory, rs.issuer.cfg.Elapsed.AtLeast())
	rs.issuer.publish((*progress).knowState)
	for _, name := range slices.Sorted(maps.Keys(w.Records)) {
		s := rs.issuer.series.findOrAdd(name) // a request may have asked for it already
		s.Mu.Lock()
		s.Stale, s.incarnation = true, w.Incarnation
		s.setRecord(*w.Records[name])
		if m, ok := s.Issuing.(*strict.Strict); ok {
			m.RequestKeys, _ = record.ParseRequestKeys(w.RequestKeys[name]) // witnessFile.load has checked them
		}
		s.Mu.Unlock()
	}
}

// witnessFile is the file that has a Witness: its head with the key "", records and keys by the prefixes of their keys.
// Without a directory it keeps nothing. One goroutine at a time may use it.
type witnessFile struct {
	log  *entrylog.Log // nil: none
	last Witness       // that the file has
}

const recordPrefix, requestKeysPrefix = "r", "k"

// load reads the witness. A file that is missing or damaged is as good as none: other nodes remember, too.
func (f *witnessFile) load() (w Witness, ok bool) {
	if f.log == nil {
		return Witness{}, false
	}
	all, err := f.log.Read()
	if err == nil {
		w, err = parseWitness(all)
	}
	return w, err == nil
}

func parseWitness(all entrylog.Content) (w Witness, err error) {
	w.Records, w.RequestKeys = make(map[string]*record.Record, len(all)), make(map[string][]byte)
	for key, value := range all {
		name, isRecord := strings.CutPrefix(key, recordPrefix)
		switch {
		case key == "":
			err = json.Unmarshal(value, &w)
		case isRecord:
			r := new(record.Record)
			if err = json.Unmarshal(value, r); err == nil {
				err = errors.Join(r.Mode.Check(), r.Map.Check(), r.Settings.Check())
			}
			if err == nil && (r.WriteCount < 1 || r.Next < 0) {
				err = entrylog.ErrDamaged
			}
			w.Records[name] = r
		default:
			var keys []byte
			if err = json.Unmarshal(value, &keys); err == nil {
				_, err = record.ParseRequestKeys(keys)
			}
			w.RequestKeys[strings.TrimPrefix(key, requestKeysPrefix)] = keys
		}
		if err != nil {
			return Witness{}, err
		}
	}
	if w.Incarnation < 0 || w.State.Cluster == "" {
		return Witness{}, entrylog.ErrDamaged
	}
	return w, nil
}

// save writes what has changed since the last save, and waits for the disk: what a node reports to have followed must
// not be lost with the power (S25).
func (f *witnessFile) save(w Witness) error {
	if f.log == nil {
		return nil
	}
	changes := entrylog.Entries{"": store.Marshal(w)}
	for name, r := range w.Records {
		if f.log.IsBlank() || f.last.Records[name] != r {
			changes[recordPrefix+name] = r
		}
	}
	for name, keys := range w.RequestKeys {
		changes[requestKeysPrefix+name] = store.Marshal(keys)
	}
	for name := range f.last.Records {
		if w.Records[name] == nil {
			changes[recordPrefix+name] = nil
		}
	}
	for name := range f.last.RequestKeys {
		if w.RequestKeys[name] == nil {
			changes[requestKeysPrefix+name] = nil
		}
	}
	if err := f.log.Write(changes); err != nil {
		return err
	}
	f.last = w
	return nil
}
