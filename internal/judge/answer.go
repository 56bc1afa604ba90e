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

// Answer is a stretch of one reply: the IDs First, First+1 ... First+Len-1.
type Answer struct {
	First      worker.ID
	Len        uint16 // 1 or more
	Node       uint16 // who answered
	Conn       uint32 // on which connection; a number is used once in a run
	Asked, Got int64  // when the request was sent, and its reply read
}

// Last is the highest ID of the stretch.
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

// Recorder writes what one client is given to a file. It is for one goroutine.
type Recorder struct {
	file *os.File
	out  *bufio.Writer
	buf  []byte
	err  error
}

// NewRecorder makes the file, which must not be there yet.
func NewRecorder(path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Recorder{file: f, out: bufio.NewWriterSize(f, 1<<16)}, nil
}

// Record takes the IDs of one reply, in the order they came in, as flat makes them. A
// stretch ends where the sequence field begins again: the last ID of a worker's tick
// and the first of the next worker's are consecutive numbers, and a node may hold both
// workers.
func (r *Recorder) Record(flat Flat, node uint16, conn uint32, asked, got int64, ids []worker.ID) {
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && n < math.MaxUint16 && ids[n] == ids[0]+worker.ID(n) && !flat.begins(ids[n]) {
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

// Close completes the file, and returns what went wrong with any part of it.
func (r *Recorder) Close() error {
	return errors.Join(r.err, r.out.Flush(), r.file.Close())
}

// reader reads a file of answers.
type reader struct {
	file *os.File
	in   *bufio.Reader
	head Answer
	err  error // why there is no head; io.EOF at the end
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

// next moves the head on.
func (r *reader) next() {
	var b [answerSize]byte
	if _, r.err = io.ReadFull(r.in, b[:]); r.err == nil {
		r.head = parseAnswer(b[:])
	} else if r.err != io.EOF {
		r.err = fmt.Errorf("judge: %s: %w", r.file.Name(), r.err)
	}
}
