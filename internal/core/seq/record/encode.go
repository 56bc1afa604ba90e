package record

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/store"
)

// MaxBytes is the greatest size of a record in bytes.
const MaxBytes = 1024

// Marshal returns the content of the record.
func (r Record) Marshal() []byte { return store.Marshal(r) }

// SetOps returns the operations that write a record at this version.
func SetOps(name string, r Record, version int32) []store.Op {
	return setVersion(store.SetOp{Path: Path(name), Data: r.Marshal(), Version: version})
}

// CreateOp returns the operation that writes a record that does not exist.
func CreateOp(name string, r Record) store.Op {
	return store.CreateOp{Path: Path(name), Data: r.Marshal()}
}

// setVersion returns the operations that make a write. A write at version -1 is unconditional in ZooKeeper, so a second
// write skips that version.
func setVersion(set store.SetOp) []store.Op {
	if set.Version != store.AnyVersion-1 {
		return []store.Op{set}
	}
	skip := set
	skip.Version = store.AnyVersion
	return []store.Op{set, skip}
}

// Parse parses a record. Its error is ErrDamaged or ErrUnknownMode.
func Parse(b []byte) (r Record, err error) {
	if err = json.Unmarshal(b, &r); err == nil {
		err = r.Mode.Check() // first, because another mode may use the other fields in another way
	}
	switch {
	case errors.Is(err, ErrUnknownMode):
		return Record{}, err
	case err != nil, !r.usable():
		return Record{}, fmt.Errorf("%w: %.80q", ErrDamaged, b)
	}
	return r, nil
}

func (r Record) usable() bool {
	return r.Map.Check() == nil && r.Settings.Check() == nil && r.ID != "" && r.WriteCount >= 1 && r.Next >= 0 &&
		(!r.Keyed() || r.MaxNames != 0 || r.KeyCheck != "")
}

// ErrDamaged: a record cannot be used. Somebody must restore or remove it.
var ErrDamaged = errors.New("not a sequence record of flaked")

// DamagedError is an ErrDamaged or ErrUnknownMode of the record at path.
type DamagedError struct {
	Path string
	error
}

func (e DamagedError) Error() string { return e.Path + ": " + e.error.Error() }

func (e DamagedError) Unwrap() error { return e.error }

// DamagedAt returns err with the path of the record, nil for nil.
func DamagedAt(path string, err error) error {
	if err == nil {
		return nil
	}
	return DamagedError{path, err}
}
