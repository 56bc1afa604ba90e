// Package entrylog has files of the state directory with one JSON value for each key. Package seq keeps in them what a
// node holds and knows of sequences. A write appends the values that have changed, so one change among a hundred
// thousand entries costs one short write.
//
// The invariant: a process that reads the file finds all values as one Write left them, the last one that returned or a
// later one, or finds that the file is damaged. This holds also after a crash of the process or of the machine.
//
// The first write of a process replaces the file: what the process has read may be pages in memory that the disk never
// took. So does the next one after a failure, or when the file is more than twice as long as it was then, and 64 KiB
// more.
//
// The file is a head, which says how long the file is at least, and frames. The checksum of a frame goes on from that
// of the frame before, so that bytes of a deleted file never count as a frame. A frame that was not written completely
// at the end of the file does not count: the process has not gone by it. Any other damage, and a file that is too
// short, make all of the file useless: a part of it may be older than what the process has gone by.
package entrylog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"hash/maphash"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// Log is a file with one value for each key. One goroutine at a time may use it.
type Log struct {
	dir  Dir
	name string
	// end is the offset of the next frame, 0 if the next write replaces the file, and must have all entries.
	end int64
	// most is the end after which the file is replaced, and sum the checksum of the last frame.
	most int64
	sum  uint32
	// prints are the fingerprints of the values in the file.
	prints map[string]uint64
}

// Entries are changes of values by their keys. A value is JSON, as []byte, or becomes JSON when it is written: so the
// JSON of a hundred thousand records is never in memory as a whole. nil removes the key.
type Entries map[string]any

// Content is the values of a file in JSON, by their keys.
type Content map[string]json.RawMessage

const (
	logMagic     = 0xf1a3ed02
	headLen      = 16
	frameHeadLen = 8
	// spareLen is added to twice the first length, so that a short file is not replaced again and again.
	spareLen = 64 << 10
	// pieceLen is the length of what is written at once of a long frame. A piece ends with an entry.
	pieceLen = 64 << 10
)

// ErrDamaged means that nothing of the file may be used.
var ErrDamaged = errors.New("damaged")

// New returns the log in a file of a directory. It does no I/O.
func New(dir Dir, name string) *Log { return &Log{dir: dir, name: name} }

// Len returns the number of entries that the last Write was to leave in the file, 0 before the first one.
func (l *Log) Len() int { return len(l.prints) }

// IsBlank reports whether the next write must have all entries.
func (l *Log) IsBlank() bool { return l.end == 0 }

// Read returns the content of the file. The error is fs.ErrNotExist if there is no file.
func (l *Log) Read() (Content, error) {
	l.end = 0
	data, err := l.dir.ReadFile(l.name)
	if err != nil {
		return nil, err
	}
	least, ok := parseHead(data)
	if !ok {
		return nil, ErrDamaged
	}
	all, end, sum := Content{}, int64(headLen), uint32(0)
	for {
		body, next, ok := parseFrame(data[end:], sum)
		if !ok || !all.apply(body) {
			break
		}
		end, sum = end+int64(frameHeadLen+len(body)), next
	}
	//mutant:s30-cut-file by TestDamagedLogIsUseless -> if end < min(least, 0) || end == headLen {
	if end < least || end == headLen {
		return nil, ErrDamaged
	}
	return all, nil
}

// Differs reports whether the file lacks some of the changes.
func (l *Log) Differs(changes Entries) bool {
	for key, value := range changes {
		if l.IsBlank() && value != nil || !l.IsBlank() && fingerprint(marshal(value)) != l.prints[key] {
			return true
		}
	}
	return false
}

var fingerprintSeed = maphash.MakeSeed()

// fingerprint returns a number by which two values differ, 0 for none.
func fingerprint(value []byte) uint64 {
	if value == nil {
		return 0
	}
	return maphash.Bytes(fingerprintSeed, value) | 1
}

// Write changes the file durably. It leaves out what the file has already.
func (l *Log) Write(changes Entries) (err error) {
	begin, end := l.end, int64(0)
	l.end = 0 // if this fails, nobody knows what the file has
	frame := func(to io.WriterAt) (err error) {
		end, err = l.writeFrame(changes, begin, to)
		return err
	}
	if begin == 0 {
		l.prints, l.sum = make(map[string]uint64, len(changes)), 0
		err = l.dir.Replace(l.name, frame)
		l.most = 2*end + spareLen
	} else {
		//mutant:s30-append-in-memory by TestLongFiles -> err = l.dir.Change(l.name, false, frame)
		err = l.dir.Change(l.name, true, frame)
		if err == nil {
			// After kill -9 the head shows if somebody has cut the file. It needs no wait for the disk: with an older
			// head, the file is only checked less.
			err = l.dir.Change(l.name, false, func(to io.WriterAt) error { return writeAt(to, head(end), 0) })
		}
	}
	if err == nil && end <= l.most {
		l.end = end
	}
	return err
}

// Remove removes the file durably.
func (l *Log) Remove() error {
	l.end = 0
	return l.dir.Remove(l.name)
}

// Check returns an error if the next process would not find the directory.
func (l *Log) Check() error { return l.dir.Check() }

// head returns the head of a file of at least this length.
func head(length int64) []byte {
	data := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, logMagic), uint64(length))
	return binary.LittleEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

func parseHead(data []byte) (length int64, ok bool) {
	if len(data) < headLen {
		return 0, false
	}
	length = int64(binary.LittleEndian.Uint64(data[4:]))
	return length, string(head(length)) == string(data[:headLen])
}

// writeFrame writes a frame that begins at an offset: with the head of the file if that is 0. end is the offset after
// it. It writes pieces, so a frame with a hundred thousand entries is never in memory as a whole. The first piece has
// the heads, and comes last.
func (l *Log) writeFrame(changes Entries, begin int64, to io.WriterAt) (end int64, _ error) {
	heads := frameHeadLen
	if begin == 0 {
		heads += headLen
	}
	first := make([]byte, heads)
	end = begin + int64(heads)
	for piece := range l.pieces(changes) {
		l.sum = checksum(piece, l.sum)
		if len(first) == heads {
			first = append(first, piece...)
		} else if err := writeAt(to, piece, end); err != nil {
			return 0, err
		}
		end += int64(len(piece))
	}
	if begin == 0 {
		copy(first, head(end))
	}
	binary.LittleEndian.PutUint32(first[heads-frameHeadLen:], uint32(end-begin)-uint32(heads))
	binary.LittleEndian.PutUint32(first[heads-4:], l.sum)
	return end, writeAt(to, first, begin)
}

func writeAt(to io.WriterAt, data []byte, at int64) error {
	_, err := to.WriteAt(data, at)
	return err
}

// pieces returns the body of a frame with the changes that the file lacks: each key and its value, which is empty if
// the key is removed. Each piece is used before the next one is made. pieces notes the fingerprints of the values.
func (l *Log) pieces(changes Entries) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var piece []byte
		for _, key := range slices.Sorted(maps.Keys(changes)) {
			value := marshal(changes[key])
			sum := fingerprint(value)
			if sum == l.prints[key] {
				continue
			}
			if l.prints[key] = sum; value == nil {
				delete(l.prints, key)
			}
			piece = append(binary.AppendUvarint(piece, uint64(len(key))), key...)
			piece = append(binary.AppendUvarint(piece, uint64(len(value))), value...)
			if len(piece) >= pieceLen {
				if !yield(piece) {
					return
				}
				piece = piece[:0]
			}
		}
		if len(piece) > 0 {
			yield(piece)
		}
	}
}

// marshal returns the JSON of a value, nil for nil.
func marshal(value any) []byte {
	switch v := value.(type) {
	case nil:
		return nil
	case []byte:
		return v
	}
	return store.Marshal(value)
}

// apply makes the changes of a frame's body. The values are parts of it. ok is false if body is not that of a
// frame.
func (c Content) apply(body []byte) (ok bool) {
	for len(body) > 0 {
		var key, value []byte
		if key, body, ok = cutBytes(body); !ok {
			return false
		}
		if value, body, ok = cutBytes(body); !ok {
			return false
		}
		if c[string(key)] = value; len(value) == 0 {
			delete(c, string(key))
		}
	}
	return true
}

// cutBytes returns the bytes at the beginning of data, whose length stands before them, and the rest.
func cutBytes(data []byte) (first, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return data[size:end:end], data[end:], true
}

// parseFrame returns the body of the frame at the beginning of data. ok is false if there is none.
func parseFrame(data []byte, before uint32) (body []byte, sum uint32, ok bool) {
	if len(data) < frameHeadLen {
		return nil, 0, false
	}
	n := binary.LittleEndian.Uint32(data)
	if uint64(n) > uint64(len(data)-frameHeadLen) {
		return nil, 0, false
	}
	body, sum = data[frameHeadLen:frameHeadLen+n], binary.LittleEndian.Uint32(data[4:])
	return body, sum, sum == checksum(body, before)
}

func checksum(body []byte, before uint32) uint32 {
	//mutant:s30-stale-frame by TestFramesOfADeletedFileDoNotCount -> return crc32.ChecksumIEEE(body)
	return crc32.Update(before, crc32.IEEETable, body)
}

// Dir is the state directory. *localcache.Dir implements it.
type Dir interface {
	// ReadFile returns fs.ErrNotExist if there is no such file.
	ReadFile(name string) ([]byte, error)
	// Replace and Remove are durable when they return nil. Each has one call at a time for each name. write writes the
	// new content of the file.
	Replace(name string, write func(to io.WriterAt) error) error
	Remove(name string) error
	// Change lets write write into a file that exists. It is durable if sync is set. Both call write exactly once. All
	// goes through one descriptor: only the one that has written a page surely hears that the disk did not take it.
	Change(name string, sync bool, write func(to io.WriterAt) error) error
	// Check returns an error if the next process would not find this directory.
	Check() error
}
