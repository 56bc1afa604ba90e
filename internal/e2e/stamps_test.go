package e2e

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultnet"
)

// lie adds ahead to the ctime and mtime of records in ZooKeeper's replies, on connections made
// from now on. To the node this looks as if its own clock were behind.
func lie(network *faultnet.Link, ahead time.Duration) {
	network.Rewrite(func() (requests, replies faultnet.Rewriter) {
		x := &exchange{ahead: ahead.Milliseconds(), asked: map[int32]int32{}}
		return messages(x.request), messages(x.reply)
	})
}

// messages returns a Rewriter that calls look with each complete message, which look may change.
// A message of ZooKeeper's protocol is preceded by its length. The first one in each direction
// opens the session and has no header, so look is not called for it.
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

// exchange follows the requests of a connection, in order to find the timestamps in the replies.
type exchange struct {
	ahead int64 // ms

	mu    sync.Mutex
	asked map[int32]int32 // operation by request number
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

// reply shifts ctime and mtime in the replies to getData and setData.
func (x *exchange) reply(m []byte) {
	const header = 4 + 8 + 4 // request number, zxid, error
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
	for _, at := range []int{16, 24} { // after czxid and mzxid
		stamp := binary.BigEndian.Uint64(stat[at:])
		binary.BigEndian.PutUint64(stat[at:], stamp+uint64(x.ahead))
	}
}
