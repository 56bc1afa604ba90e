package judge

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/flaked/flaked/worker"
)

// Answer holds consecutive IDs of one reply: First, First+1 ... First+Len-1.
type Answer struct {
	First      worker.ID
	Len        uint16 // 1 or more
	Node       uint16 // the node that answered
	Conn       uint32 // the connection; each number is used once in a run
	Asked, Got int64  // when the client sent the request and read the reply
}

// Last returns the highest ID of the answer. Len must not be 0.
func (a Answer) Last() worker.ID { return a.First + worker.ID(a.Len) - 1 }

const answerSize = 32

func (a Answer) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(a.First))
	b = binary.LittleEndian.AppendUint16(b, a.Len)
	b = binary.LittleEndian.AppendUint16(b, a.Node)
	b = binary.LittleEndian.AppendUint32(b, a.Conn)
	b = binary.LittleEndian.AppendUint64(b, uint64(a.Asked))
	return binary.LittleEndian.AppendUint64(b, uint64(a.Got))
}

func parseAnswer(b []byte) Answer {
	return Answer{
		First: worker.ID(binary.LittleEndian.Uint64(b)), Len: binary.LittleEndian.Uint16(b[8:]),
		Node: binary.LittleEndian.Uint16(b[10:]), Conn: binary.LittleEndian.Uint32(b[12:]),
		Asked: int64(binary.LittleEndian.Uint64(b[16:])), Got: int64(binary.LittleEndian.Uint64(b[24:])),
	}
}

// Recorder writes the IDs that one client receives to a file. It is for one goroutine.
type Recorder struct {
	file *os.File
	out  *bufio.Writer
	buf  []byte
	err  error
}

// NewRecorder creates the file. It fails if the file exists.
func NewRecorder(path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Recorder{file: f, out: bufio.NewWriterSize(f, 1<<16)}, nil
}

// Record writes the IDs of one reply, in the order in which they were received. The IDs must
// be in layout l. An Answer ends where the sequence field wraps to 0, because the next
// number may belong to another worker. The last ID of a worker's tick and the first ID of the
// next worker are consecutive numbers, and one node may hold both workers.
func (r *Recorder) Record(l worker.Layout, node uint16, conn uint32, asked, got int64, ids []worker.ID) {
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && n < math.MaxUint16 && ids[n] == ids[0]+worker.ID(n) && ids[n]&(1<<l.SequenceBits-1) != 0 {
			n++
		}
		r.write(Answer{ids[0], uint16(n), node, conn, asked, got})
		ids = ids[n:]
	}
}

func (r *Recorder) write(a Answer) {
	if r.err == nil {
		r.buf = a.append(r.buf[:0])
		_, r.err = r.out.Write(r.buf)
	}
}

// Close flushes and closes the file. It returns every error since NewRecorder, joined.
func (r *Recorder) Close() error {
	return errors.Join(r.err, r.out.Flush(), r.file.Close())
}

// reader reads a file of answers. head is valid while err is nil.
type reader struct {
	file *os.File
	in   *bufio.Reader
	head Answer
	err  error // io.EOF at the end of the file
}

func open(path string) (*reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &reader{file: f, in: bufio.NewReaderSize(f, 1<<16)}
	r.next()
	return r, nil
}

// next reads the next answer into head, or sets err.
func (r *reader) next() {
	var b [answerSize]byte
	if _, r.err = io.ReadFull(r.in, b[:]); r.err == nil {
		r.head = parseAnswer(b[:])
	} else if r.err != io.EOF {
		r.err = fmt.Errorf("judge: %s: %w", r.file.Name(), r.err)
	}
}
