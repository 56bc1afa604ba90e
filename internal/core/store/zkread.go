package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// ZooKeeper 3.6 and later read several records in one request, which go-zookeeper does not know. So a wireConn sends it
// beside the library's requests, with an xid that the library uses for none, and takes the reply out of what the
// library reads.

const (
	opGetData   = 4
	opMultiRead = 22
	// Codes of errors. An older server answers unknownRequest, and ends the session.
	codeNoNode, codeUnknownRequest = -101, -6
	// firstReadXid is the xid of the first multi-read; later ones are lower. Those of the library are above.
	firstReadXid = -1000
	// mostInRead is the most records in one multi-read. Larger ones would delay the pings of the session.
	mostInRead = 128
)

var (
	// errOldServer: the server knows no multi-read.
	errOldServer = errors.New("the server knows no multi-read")
	// errAskSingly: a record could not be read. The library knows the words for it.
	errAskSingly = errors.New("a record could not be read")
)

// GetAll is part of Store. It sends all requests on one connection without waiting for answers in between.
func (z *ZK) GetAll(ctx context.Context, paths ...string) ([]Record, error) {
	full := make([]string, len(paths))
	for i, path := range paths {
		if err := checkCall("get", path); err != nil {
			return nil, err
		}
		full[i] = z.full(path)
	}
	old, changed := z.oldServer.Load(), z.Changed()
	records, err := z.readAll(ctx, full)
	if !errors.Is(err, ErrUnreachable) || old || !z.oldServer.Load() {
		return records, err
	}
	// An old server has ended the session: read in the next one.
	ended, cancel := context.WithTimeout(ctx, z.cfg.CallTimeout)
	defer cancel()
	select {
	case <-changed:
	case <-ended.Done():
	}
	return z.readAll(ctx, full)
}

// readAll reads the records at the paths in ZooKeeper, in the present session.
func (z *ZK) readAll(ctx context.Context, full []string) ([]Record, error) {
	what := strings.Join(full, " ")
	if len(full) > 1 { // there may be hundreds
		what = fmt.Sprintf("%s and %d more", full[0], len(full)-1)
	}
	return call(ctx, z, "get", what, func(c *zkClient) ([]Record, error) {
		records := make([]Record, len(full))
		var group errgroup.Group
		for first := 0; first < len(full); first += mostInRead {
			some := full[first:min(first+mostInRead, len(full))]
			group.Go(func() error { return z.readSome(c, some, records[first:]) })
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		return records, nil
	})
}

// readSome reads the records at the paths, by single requests if a multi-read is of no use.
func (z *ZK) readSome(c *zkClient, paths []string, to []Record) error {
	if len(paths) > 1 && !z.oldServer.Load() {
		err := c.socket.multiRead(paths, to)
		if err != errOldServer && err != errAskSingly {
			return err
		}
		z.oldServer.Store(err == errOldServer)
	}
	var group errgroup.Group
	for i, path := range paths {
		group.Go(func() error {
			data, stat, err := c.conn.Get(path)
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			to[i] = Record{Found: err == nil, Data: data, Stat: fromZK(stat)}
			return err
		})
	}
	return group.Wait()
}

// multiRead reads the records at the paths in one request. It waits for the reply, or until the
// connection ends.
func (w *wireConn) multiRead(paths []string, to []Record) error {
	answer := make(chan []byte, 1)
	w.mu.Lock()
	w.reads = (w.reads + 1) % (1 << 30)
	xid := firstReadXid - w.reads
	w.waiting[xid] = answer
	w.mu.Unlock()
	if err := w.send(encodeMultiRead(xid, paths)); err != nil {
		return err
	}
	select {
	case reply := <-answer:
		return decodeMultiRead(reply, to[:len(paths)])
	case <-w.gone:
	}
	select {
	case reply := <-answer: // an old server answers and ends the connection at once
		return decodeMultiRead(reply, to[:len(paths)])
	default:
		return zk.ErrConnectionClosed
	}
}

// deliver passes a reply, from its zxid on, to the multi-read that waits for it.
func (w *wireConn) deliver(xid int32, reply []byte) {
	w.mu.Lock()
	answer := w.waiting[xid]
	delete(w.waiting, xid)
	w.mu.Unlock()
	if answer != nil {
		answer <- reply
	}
}

// encodeMultiRead returns a request: a header, for each record a header (type, end, error) with its path and no watch,
// and a last header that says that it is the end.
func encodeMultiRead(xid int32, paths []string) []byte {
	be := binary.BigEndian
	b := be.AppendUint32(make([]byte, 4, 512), uint32(xid))
	b = be.AppendUint32(b, opMultiRead)
	for _, path := range paths {
		b = append(be.AppendUint32(b, opGetData), 0, 0xff, 0xff, 0xff, 0xff)
		b = append(be.AppendUint32(b, uint32(len(path))), path...)
		b = append(b, 0)
	}
	b = append(b, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)
	be.PutUint32(b, uint32(len(b)-4))
	return b
}

// decodeMultiRead parses a reply: zxid, error, and for each record a header (type, end, error) with its data and stat,
// or with an error. Data of a length below 0 are none.
func decodeMultiRead(reply []byte, to []Record) error {
	r := wireReader{rest: reply}
	r.take(8)
	if code := r.int32(); code == codeUnknownRequest {
		return errOldServer
	} else if code != 0 {
		return errAskSingly
	}
	for i := range to {
		kind := r.int32()
		r.take(5)
		if kind != opGetData {
			if code := r.int32(); code != codeNoNode && r.err == nil {
				return errAskSingly
			}
			to[i] = Record{}
			continue
		}
		to[i] = Record{Found: true}
		if n := r.int32(); n >= 0 {
			to[i].Data = slices.Clone(r.take(int(n)))
		}
		to[i].Stat = r.stat()
	}
	return r.err
}

// wireReader reads the fields of a reply. After the end it reads zeros, and err is set.
type wireReader struct {
	rest []byte
	err  error
}

func (r *wireReader) take(n int) []byte {
	if n > len(r.rest) {
		r.rest, r.err = nil, zk.ErrShortBuffer
		return make([]byte, min(n, 8))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *wireReader) int32() int32 { return int32(binary.BigEndian.Uint32(r.take(4))) }
func (r *wireReader) int64() int64 { return int64(binary.BigEndian.Uint64(r.take(8))) }

func (r *wireReader) stat() (s Stat) {
	s.Czxid, s.Mzxid, s.Ctime, s.Mtime = r.int64(), r.int64(), r.int64(), r.int64()
	s.Version, s.Cversion = r.int32(), r.int32()
	r.take(4) // version of the ACL
	s.EphemeralOwner = r.int64()
	r.take(4) // length of the data
	s.NumChildren = r.int32()
	r.take(8) // zxid of the last change of the children
	return s
}
