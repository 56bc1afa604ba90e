package node

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memfile"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
)

// filled returns a value of T whose fields are all set, those added later too.
func filled[T any](t *testing.T) (v T) {
	t.Helper()
	fill(t, reflect.ValueOf(&v).Elem())
	return v
}

func fill(t *testing.T, s reflect.Value) {
	t.Helper()
	for i := range s.NumField() {
		switch f := s.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(s.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int32, reflect.Int64:
			f.SetInt(int64(100 + i))
		case reflect.Uint64:
			f.SetUint(uint64(100 + i))
		case reflect.Struct:
			fill(t, f)
		default:
			t.Fatalf("%s is a %s: extend this test", s.Type().Field(i).Name, f.Kind())
		}
	}
}

func fullRecord(t *testing.T) LocalRecord {
	t.Helper()
	return LocalRecord{
		ClusterName: "prod", ZooKeeper: "zk1:2181/flaked", Cluster: filled[coordinator.Cluster](t),
		Claim:   filled[coordinator.Claim](t),
		Stopped: true, ServedMs: 65_000, Boot: "b", Rotations: []int64{1, 2, 3, 4},
	}
}

func encode(t *testing.T, r LocalRecord) localcache.Record {
	t.Helper()
	kept, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// FuzzDecodeRecord: a payload of the state file is refused with advice, or is a record that stays the same when it is
// saved again. A node takes over its cluster only if it can make IDs by all of its rules.
func FuzzDecodeRecord(f *testing.F) {
	r := LocalRecord{Cluster: coordinator.Cluster{UUID: "u", Layout: "leaf", Slots: 1024, OnRollback: "coast=1s",
		BorrowMs: 5}}
	good, _ := json.Marshal(r)
	for _, b := range [][]byte{good, []byte(`{}`), []byte(`{"claim":{"node":"n","term":3},"rotations":[1,2]}`),
		[]byte("null"), bytes.ReplaceAll(good, []byte(`"borrow_ms":5`), []byte(`"borrow_ms":9223372036854775807`))} {
		f.Add(b, int64(5))
	}
	f.Fuzz(func(t *testing.T, payload []byte, m int64) {
		r, err := DecodeRecord(localcache.Record{Payload: payload, ReservedUntil: m, LeaseUntil: m + 1,
			ServedMs: m + 2})
		if err != nil {
			if !strings.Contains(err.Error(), "empty state directory") {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeRecord(encode(t, r))
		if err != nil || !reflect.DeepEqual(encode(t, again), encode(t, r)) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
		rules, err := parseRules(r.Cluster)
		if err == nil && (rules.layout.Validate() != nil || rules.borrow < 0 || rules.borrow > limits.MaxAhead ||
			rules.borrow+rules.onRollback.Coast() > limits.MaxAhead) {
			t.Fatalf("%+v gives %+v", r.Cluster, rules)
		}
	})
}

// A restart finds every field that was saved.
func TestLocalRecordLosesNothing(t *testing.T) {
	disk, want := memfile.New(nil), fullRecord(t)
	want.Claim.Last.Sent = timeguard.Moment{Most: want.Claim.Last.Sent.Most} // nothing else of it is needed
	cache, err := localcache.New(disk, localcache.Fingerprint{})
	if err != nil {
		t.Fatal(err)
	}
	if want.Claim.Generation, err = cache.Save(encode(t, want)); err != nil {
		t.Fatal(err)
	}
	again, err := localcache.New(disk.Clone(), localcache.Fingerprint{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*localcache.StateFile{"the same": cache, "reopened": again} {
		got, err := DecodeRecord(c.Load().Record)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, want)
		}
	}
}

// A heartbeat and an extension of the reserved bound must not change the payload: a changed
// payload costs a second sync.
func TestPayloadIsTheSameBetweenHeartbeats(t *testing.T) {
	before, after := fullRecord(t), fullRecord(t)
	after.Claim.ReservedUntil += 1000
	after.Claim.LeaseUntil += 3000
	after.Claim.Generation++
	after.ServedMs += 1000
	after.Claim.Chain = coordinator.Chain{Began: 1, Sent: 2, Version: 3}
	after.Claim.Last.Stamp++
	if a, b := string(encode(t, before).Payload), string(encode(t, after).Payload); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}

// The local record keeps neither InUse nor the freeze: only ZooKeeper can know them.
func TestLocalRecordOmitsFreezeAndConfirmation(t *testing.T) {
	found, claim := filled[coordinator.Cluster](t), filled[coordinator.Claim](t)
	want := found
	want.Incarnation, want.InUse, want.FrozenUntil, want.FrozenBy = claim.Incarnation, false, 0, ""
	if got := keptPart(found, claim); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A state file is intact, but its record is not that of a node. The start must end, and must not overwrite the file.
func TestForeignRecordIsRefused(t *testing.T) {
	r := newRig(t)
	cache, err := localcache.New(r.Disk, localcache.Fingerprint{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cache.Save(localcache.Record{ReservedUntil: time.Now().UnixMilli(),
		Payload: json.RawMessage(`{"claim":7}`)}); err != nil {
		t.Fatal(err)
	}
	was := string(r.Disk.Disk())
	err = r.start().ended()
	if err == nil || !strings.Contains(err.Error(), "does not contain a node's record") ||
		string(r.Disk.Disk()) != was {
		t.Errorf("ended with %v", err)
	}
}

// A bad block costs one copy in the state file, also the one whose generation ZooKeeper has seen.
// The other copy is not an old one, so the node goes on with its worker.
func TestNodeGoesOnFromEitherCopyOfItsRecord(t *testing.T) {
	for _, lost := range []int64{0, localcache.FileSize / 2} {
		r := newRig(t)
		before := r.confirmedAndStopped().view.Load().Claim
		r.Disk.Damage(lost, make([]byte, localcache.FileSize/2))
		again := r.start()
		again.until("the worker at its second term", func() bool {
			claim := again.view.Load().Claim
			if claim.Node != "" && claim.Node != before.Node {
				t.Fatalf("the copy at %d is lost: %s, it was node %s", lost, again.Worker(), before.Node)
			}
			return claim.Term == before.Term+1
		})
	}
}

// The boot clock of another boot says nothing of the heartbeats before, nor of the end of a lease.
func TestChainEndsWithTheBoot(t *testing.T) {
	for name, same := range map[string]bool{"one": true, "two": false} {
		r := newRig(t)
		r.cfg.BootID = "one"
		r.confirmedAndStopped()
		n, _ := r.node(func(c *Config) { c.BootID = name })
		_, err := n.keeper.firstAttempt()
		if c := n.keeper.coord.Claim(); err != nil || (c.Chain.Began != 0) != same || (c.Chain.Sent != 0) != same ||
			(c.BootEnd != 0) != same || c.Chain.Version == 0 {
			t.Errorf("in boot %s: %+v, %v", name, c, err)
		}
	}
}
