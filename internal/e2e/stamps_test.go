package e2e

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/faultnet"
)

// lie makes the stamps that ZooKeeper's leader puts on records later than they
// are, over connections made from now on: which for the node is the same as
// having a wrong clock itself.
func lie(network *faultnet.Link, ahead time.Duration) {
	network.Rewrite(func() (requests, replies faultnet.Rewriter) {
		x := &exchange{ahead: ahead.Milliseconds(), asked: map[int32]int32{}}
		return messages(x.request), messages(x.reply)
	})
}

// messages shows each of ZooKeeper's messages, which come behind their length,
// before it goes on. The first one each way is the greeting, and has no header.
func messages(look func([]byte)) faultnet.Rewriter {
	var kept []byte
	greeted := false
	return func(came []byte) (whole []byte) {
		kept = append(kept, came...)
		for len(kept) >= 4 {
			end := 4 + int(binary.BigEndian.Uint32(kept))
			if len(kept) < end {
				break
			}
			if greeted {
				look(kept[4:end])
			}
			greeted = true
			whole = append(whole, kept[:end]...)
			kept = kept[end:]
		}
		return whole
	}
}

// exchange is a connection's conversation in ZooKeeper's protocol, as far as
// it takes to find the stamps in it.
type exchange struct {
	ahead int64 // ms

	mu    sync.Mutex
	asked map[int32]int32 // which operation a request number is
}

const (
	opGetData = 4
	opSetData = 5
)

func (x *exchange) request(m []byte) {
	if len(m) < 8 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked[int32(binary.BigEndian.Uint32(m))] = int32(binary.BigEndian.Uint32(m[4:]))
}

// reply shifts ctime and mtime in the answers that carry a record's stat.
func (x *exchange) reply(m []byte) {
	const header = 4 + 8 + 4 // number, zxid, error
	if len(m) <= header || x.ahead == 0 {
		return
	}
	number := int32(binary.BigEndian.Uint32(m))
	x.mu.Lock()
	op := x.asked[number]
	delete(x.asked, number)
	x.mu.Unlock()
	stat := m[header:]
	switch op {
	case opGetData: // the data comes first
		n := int32(binary.BigEndian.Uint32(stat))
		stat = stat[4+max(0, n):]
	case opSetData:
	default:
		return
	}
	for _, at := range []int{16, 24} { // behind czxid and mzxid
		stamp := binary.BigEndian.Uint64(stat[at:])
		binary.BigEndian.PutUint64(stat[at:], stamp+uint64(x.ahead))
	}
}
