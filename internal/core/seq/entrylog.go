package seq

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/flaked/flaked/internal/core/store"
)

// entryLog is a file of the state directory that has one value for each key. A write appends the values that have
// changed, so one bound of a hundred thousand costs one short write. The first write of a process replaces the file: an
// earlier process may have read pages back that its disk never took. So does the next one after a failure, or when the
// file is more than twice as long as it was then.
//
// The file is a head, which says how long the file is at least, and frames. The checksum of a frame goes on from that
// of the frame before, so that what a deleted file left on the disk is none. A frame that was not written completely at
// the end of the file does not count: the process has not gone by it. Any other damage, and a file that is too short,
// make all of the file useless: a part of it would have positions that were issued since.
//
// One goroutine at a time may use it.
type entryLog struct {
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

// entries are changes of values by their keys. A value is JSON, as []byte, or what becomes JSON when it is written: so
// JSON of a hundred thousand records is in memory once. nil removes the key.
type entries map[string]any

// content is the values of a file in JSON, by their keys.
type content map[string]json.RawMessage

const (
	logMagic     = 0xf1a3ed02
	headLen      = 16
	frameHeadLen = 8
	// looseLen is a length that each file may have. Only a longer one is replaced because it is long.
	looseLen = 64 << 10
)

var errDamagedFile = errors.New("damaged")

// isBlank reports whether the next write must have all entries.
func (l *entryLog) isBlank() bool { return l.end == 0 }

// read returns the content of the file. The error is fs.ErrNotExist if there is no file.
func (l *entryLog) read() (content, error) {
	l.end = 0
	data, err := l.dir.ReadFile(l.name)
	if err != nil {
		return nil, err
	}
	least, ok := parseHead(data)
	if !ok {
		return nil, errDamagedFile
	}
	all, end, sum := content{}, int64(headLen), uint32(0)
	for {
		body, next, ok := parseFrame(data[end:], sum)
		if !ok || !all.apply(body) {
			break
		}
		end, sum = end+int64(frameHeadLen+len(body)), next
	}
	//mutant:s30-cut-file by TestDamagedLogIsUseless -> if end < min(least, 0) || end == headLen {
	if end < least || end == headLen {
		return nil, errDamagedFile
	}
	return all, nil
}

// differing removes from changes what the file has already.
func (l *entryLog) differing(changes entries) entries {
	for key, value := range changes {
		if l.isBlank() {
			if value == nil {
				delete(changes, key)
			}
			continue
		}
		data := marshal(value)
		if changes[key] = data; l.prints[key] == fingerprint(data) {
			delete(changes, key)
		}
	}
	return changes
}

var fingerprintSeed = maphash.MakeSeed()

// fingerprint returns a number by which two values differ, 0 for none.
func fingerprint(value []byte) uint64 {
	if value == nil {
		return 0
	}
	return maphash.Bytes(fingerprintSeed, value) | 1
}

// write changes the file durably.
func (l *entryLog) write(changes entries) error {
	end := l.end
	l.end = 0 // if this fails, nobody knows what the file has
	if end == 0 {
		l.prints = make(map[string]uint64, len(changes))
		data, sum := l.appendFrame(make([]byte, headLen), changes, 0)
		end = int64(len(data))
		copy(data, head(end))
		if err := l.dir.Replace(l.name, data); err != nil {
			return err
		}
		l.most, l.sum = 2*end+looseLen, sum
	} else {
		frame, sum := l.appendFrame(nil, changes, l.sum)
		if err := l.dir.WriteAt(l.name, frame, end, true); err != nil {
			return err
		}
		end, l.sum = end+int64(len(frame)), sum
		// After kill -9 the head shows if somebody has cut the file. It needs no wait for the disk: with an older head,
		// the file is only checked less.
		if err := l.dir.WriteAt(l.name, head(end), 0, false); err != nil {
			return err
		}
	}
	if end <= l.most {
		l.end = end
	}
	return nil
}

// remove removes the file durably.
func (l *entryLog) remove() error {
	l.end = 0
	return l.dir.Remove(l.name)
}

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

// appendFrame appends a frame with the changes to data: each key and its value, which is empty if the key is removed. It
// notes their fingerprints. before is the checksum of the frame before.
func (l *entryLog) appendFrame(data []byte, changes entries, before uint32) (_ []byte, sum uint32) {
	begin := len(data) + frameHeadLen
	data = append(data, make([]byte, frameHeadLen)...)
	for k, key := range slices.Sorted(maps.Keys(changes)) {
		value := marshal(changes[key])
		if l.prints[key] = fingerprint(value); value == nil {
			delete(l.prints, key)
		}
		if need := 2*binary.MaxVarintLen32 + len(key) + len(value); need > cap(data)-len(data) {
			data = slices.Grow(data, need*(len(changes)-k)) // the other entries are about as long
		}
		data = append(binary.AppendUvarint(data, uint64(len(key))), key...)
		data = append(binary.AppendUvarint(data, uint64(len(value))), value...)
	}
	sum = checksum(data[begin:], before)
	binary.LittleEndian.PutUint32(data[begin-frameHeadLen:], uint32(len(data)-begin))
	binary.LittleEndian.PutUint32(data[begin-frameHeadLen+4:], sum)
	return data, sum
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

// apply makes the changes of a frame's body. The values are parts of it. ok is false if it is none.
func (c content) apply(body []byte) (ok bool) {
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

// cutBytes cuts data after the bytes at its beginning, before which their number stands.
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
