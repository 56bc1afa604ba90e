package e2e

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// stateBlock is the size of each of the two blocks of the state file. Each has its generation at
// byte 8.
const stateBlock = 4096

// blocks returns the offset of the block that was written last, and that of the other block.
func blocks(b []byte) (newer, older int) {
	if binary.LittleEndian.Uint64(b[8:]) > binary.LittleEndian.Uint64(b[stateBlock+8:]) {
		return 0, stateBlock
	}
	return stateBlock, 0
}

type outcome int

const (
	another outcome = iota // registers as a new node
	same                   // resumes its worker
	either                 // both are safe; it depends on what was reported to ZooKeeper
)

// damages lists kinds of damage to a state file and their outcomes.
var damages = []struct {
	name   string
	damage func([]byte) []byte
	want   outcome
}{
	{"none", func(b []byte) []byte { return b }, same},
	{"empty", func([]byte) []byte { return nil }, another},
	{"cut within the first block", func(b []byte) []byte { return b[:100] }, another},
	{"cut after the first block", func(b []byte) []byte { return b[:stateBlock] }, another},
	{"cut by a byte", func(b []byte) []byte { return b[:len(b)-1] }, another},
	{"longer by a byte", func(b []byte) []byte { return append(b, 0) }, another},
	{"all zeros", func(b []byte) []byte { return make([]byte, len(b)) }, another},
	{"noise", func(b []byte) []byte { return bytes.Repeat([]byte{0xa5, 0x5a, 'F'}, len(b))[:len(b)] }, another},
	{"one block twice", func(b []byte) []byte { return append(b[:stateBlock:stateBlock], b[:stateBlock]...) }, another},
	{"blocks swapped", func(b []byte) []byte { return append(bytes.Clone(b[stateBlock:]), b[:stateBlock]...) }, same},
	{"magic of both", flipBoth(0), another},
	{"version of both", flipBoth(4), another},
	{"payload of both", flipBoth(100), another},
	{"zeros at the end of both", flipBoth(stateBlock - 5), another},
	{"checksum of both", flipBoth(stateBlock - 1), another},
	{"magic of the older", flipOlder(1), same},
	{"generation of the older", flipOlder(8), same},
	{"payload of the older", flipOlder(60), same},
	{"older block zero", func(b []byte) []byte {
		_, older := blocks(b)
		clear(b[older : older+stateBlock])
		return b
	}, same},
	{"generation of the newer", flipNewer(9), either},
	{"length of the newer", flipNewer(16), either},
	{"payload of the newer", flipNewer(200), either},
	{"checksum of the newer", flipNewer(stateBlock - 2), either},
}

func flipBoth(at int) func([]byte) []byte {
	return func(b []byte) []byte { b[at] ^= 0x10; b[stateBlock+at] ^= 0x01; return b }
}

func flipOlder(at int) func([]byte) []byte {
	return func(b []byte) []byte { _, older := blocks(b); b[older+at] ^= 0x04; return b }
}

func flipNewer(at int) func([]byte) []byte {
	return func(b []byte) []byte { newer, _ := blocks(b); b[newer+at] ^= 0x80; return b }
}

// After damage to its state file a node waits for ten seconds or loses its worker. It never
// issues an ID a second time.
func TestDamagedStateIssuesNoDuplicates(t *testing.T) {
	t.Parallel()
	// All nodes run at the same time, because those with one block left wait for ten seconds.
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--heartbeat", "500ms", "--confirm-time", "1s")
	nodes := s.startedTogether(len(damages))
	before := make([]identity, len(nodes))
	for i, n := range nodes {
		before[i] = n.identity()
		n.get(500)
		if i%2 == 0 {
			n.kill()
		} else {
			n.stop()
		}
		content, err := os.ReadFile(n.stateFile())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(n.stateFile(), damages[i].damage(content), 0o600); err != nil {
			t.Fatal(err)
		}
		n.start()
	}
	holder := map[int]string{}
	for i, n := range nodes {
		row := damages[i]
		n.ready().get(500)
		now := n.identity()
		if is := now.uuid == before[i].uuid && now.worker == before[i].worker; row.want != either && is != (row.want == same) {
			t.Errorf("%s: %+v, was %+v", row.name, now, before[i])
		}
		if other, taken := holder[now.worker]; taken {
			t.Errorf("worker %d is held after %q and after %q", now.worker, other, row.name)
		}
		holder[now.worker] = row.name
		if now.uuid != before[i].uuid && now.worker < len(nodes) {
			t.Errorf("%s: a new node got worker %d, which is still held", row.name, now.worker)
		}
		if state := n.stored(); state.Status != "record" || state.Damaged {
			t.Errorf("%s: what is stored now is %q, damaged: %v", row.name, state.Status, state.Damaged)
		}
	}
}
