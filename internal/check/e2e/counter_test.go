package e2e

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"
	"os"
	"path/filepath"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// setCreateCount changes the create count of a znode in a copy of ZooKeeper's data. ZooKeeper
// numbers the znode's sequential children by that count. Creating 2^31 children instead would
// take too long.
func setCreateCount(t *testing.T, dir, path string, count int32) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "snapshot.*"))
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// A znode consists of its path, its data, the number of its ACL, czxid, mzxid,
		// ctime, mtime, version, and the create count.
		name := append(binary.BigEndian.AppendUint32(nil, uint32(len(path))), path...)
		at := bytes.Index(b, name)
		if at < 0 {
			continue
		}
		sealed := seals(b)
		if len(sealed) == 0 {
			t.Fatalf("%s is not sealed as it was when this was written", file)
		}
		data := at + len(name)
		n := max(0, int32(binary.BigEndian.Uint32(b[data:])))
		binary.BigEndian.PutUint32(b[data+4+int(n)+8+4*8+4:], uint32(count))
		for _, seal := range sealed {
			binary.BigEndian.PutUint64(b[seal:], uint64(adler32.Checksum(b[:seal])))
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		changed++
	}
	if changed == 0 {
		t.Fatalf("no snapshot in %s has %s", dir, path)
	}
}

// seals returns the offsets of a snapshot's checksums. Each checksum covers everything before it
// and is followed by the path "/".
func seals(b []byte) (offsets []int) {
	end := []byte{0, 0, 0, 1, '/'}
	sum := adler32.New()
	last := 0
	for i := 0; i+8+len(end) <= len(b); i++ {
		if !bytes.Equal(b[i+8:i+8+len(end)], end) {
			continue
		}
		sum.Write(b[last:i])
		last = i
		if binary.BigEndian.Uint64(b[i:]) == uint64(sum.Sum32()) {
			offsets = append(offsets, i)
		}
	}
	return offsets
}

// Ticket numbers end at 2^31-1. From then on ZooKeeper assigns the last number again and again,
// and it is taken. Existing nodes continue to serve, and new nodes still register.
func TestNodesRegisterAfterTheLastTicketNumber(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr())
	first := s.started().ready()
	before := first.identity()
	first.get(100)
	first.stop()
	zk.Snapshot(t) // its restart writes all data into one file
	copied := zk.Snapshot(t)
	setCreateCount(t, filepath.Join(copied, "zk0"), "/flaked/default/tickets", 1<<31-3)
	zk.Restore(t, copied)

	holder := map[int]string{}
	check := func(n *node) {
		t.Helper()
		n.ready().get(100)
		if other, taken := holder[n.worker()]; taken {
			t.Errorf("%s and %s are both worker %d", other, n.name, n.worker())
		}
		holder[n.worker()] = n.name
	}
	check(first.start())
	if now := first.identity(); now.worker != before.worker || now.uuid != before.uuid {
		t.Errorf("%+v, was %+v", now, before)
	}
	for range 3 {
		check(s.started())
	}
	tickets := s.records().tickets()
	if last := tickets[len(tickets)-1]; last != "n-2147483647" {
		t.Fatalf("the tickets are %q: the numbers have not come to their end", tickets)
	}
	for range 3 {
		check(s.started())
	}
	if now := s.records().tickets(); len(now) != len(tickets)+3 {
		t.Errorf("the tickets are %q, and were %q", now, tickets)
	}
	first.get(100)
}
