package localcache

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// One block, integers little endian:
//
//	   0  "FLKD"
//	   4  format version, uint32
//	   8  generation, uint64
//	  16  length of the body, uint32
//	  20  body: the Record as JSON
//	   .  zeros
//	4092  CRC-32C of bytes 0 to 4091
//
// The CRC is at the end and covers the zeros too. So it covers every byte of the block, and
// does not match before the last sector is written. Every format must keep magic, version
// and CRC at these offsets. They distinguish a file of another format from a damaged one.
const (
	magic         = "FLKD"
	formatVersion = 3
	blockSize     = 4096
	headerSize    = 20
	crcAt         = blockSize - 4
	maxBody       = crcAt - headerSize

	// FileSize is the fixed size of the state file in bytes.
	FileSize = 2 * blockSize
)

var (
	// ErrTooLarge: the record does not fit into its block. Nothing was written.
	ErrTooLarge = errors.New("record too large")
	// ErrOtherFormat: another version of flaked wrote the file. Open refuses the file and
	// does not overwrite it, because its node may come back.
	ErrOtherFormat = errors.New("the state file has another format")

	errBlank = errors.New("blank")
)

// block is one half of the file as it was read: its bytes, and its record or an error.
type block struct {
	raw []byte
	rec Record
	err error
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeBody returns the body of r's block, which does not depend on the generation. It
// returns ErrTooLarge if the body does not fit into a block.
func encodeBody(r Record) ([]byte, error) {
	p, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	if len(p) > maxBody {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(p), maxBody)
	}
	return p, nil
}

// sealBlock returns the block for a body of at most maxBody bytes.
func sealBlock(body []byte, generation uint64) []byte {
	b := make([]byte, blockSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[4:], formatVersion)
	binary.LittleEndian.PutUint64(b[8:], generation)
	binary.LittleEndian.PutUint32(b[16:], uint32(len(body)))
	copy(b[headerSize:], body)
	binary.LittleEndian.PutUint32(b[crcAt:], crc32.Checksum(b[:crcAt], castagnoli))
	return b
}

// decodeBlock returns the record of a valid block. The error is errBlank if the block is
// all zeros, ErrOtherFormat, or a description of the damage.
func decodeBlock(b []byte) (Record, error) {
	switch {
	case len(b) != blockSize:
		return Record{}, fmt.Errorf("truncated to %d bytes", len(b))
	case bytes.Count(b, []byte{0}) == blockSize:
		return Record{}, errBlank
	case string(b[:4]) != magic:
		return Record{}, errors.New("not a flaked record")
	case binary.LittleEndian.Uint32(b[crcAt:]) != crc32.Checksum(b[:crcAt], castagnoli):
		return Record{}, errors.New("checksum does not match")
	}
	if v := binary.LittleEndian.Uint32(b[4:]); v != formatVersion {
		return Record{}, fmt.Errorf("%w: %d, but this flaked reads only format %d. Use the release that wrote the "+
			"file, or an empty state directory", ErrOtherFormat, v, formatVersion)
	}
	n := binary.LittleEndian.Uint32(b[16:])
	if n > maxBody {
		return Record{}, fmt.Errorf("length of %d bytes does not fit into a block", n)
	}
	var r Record
	if err := json.Unmarshal(b[headerSize:headerSize+n], &r); err != nil {
		return Record{}, fmt.Errorf("body does not decode: %w", err)
	}
	r.Generation = binary.LittleEndian.Uint64(b[8:])
	return r, nil
}
