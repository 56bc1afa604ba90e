package zkstore

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/limits"
)

// Store is what flaked needs of ZooKeeper: a tree of small records with
// versions, where a write can be made conditional.
//
// Paths are relative to the cluster's root and begin with a slash
// ("/cluster", "/workers/0007"). Every call returns by the deadline of its
// context, whatever the server does.
type Store interface {
	// Get reads a record. ErrNoNode when there is none.
	Get(ctx context.Context, path string) ([]byte, Stat, error)
	// GetAll reads several records, in the time of one round trip, and returns them
	// in the order of paths. They are not read at one moment, nor in any order. A record
	// that is not there is no error.
	GetAll(ctx context.Context, paths ...string) ([]Record, error)
	// Children lists the names below path, sorted. ErrNoNode when path is absent.
	Children(ctx context.Context, path string) ([]string, error)
	// Create makes a record and returns its path, which differs from the one
	// asked for when kind is PersistentSequential. ErrExists when it is there
	// already, ErrNoNode when the parent is missing.
	Create(ctx context.Context, path string, data []byte, kind Kind) (string, error)
	// Set overwrites a record if its version is the one given; AnyVersion
	// matches all. ErrBadVersion when it is another, ErrNoNode when the record
	// is gone.
	Set(ctx context.Context, path string, data []byte, version int32) (Stat, error)
	// Delete removes a record if its version is the one given; AnyVersion
	// matches all. ErrNoNode when it is gone already.
	Delete(ctx context.Context, path string, version int32) error
	// Multi applies all operations or none. The error is that of the first
	// operation that could not be applied.
	Multi(ctx context.Context, ops ...Op) error
	// Sync waits until this session's server has caught up with the leader,
	// so that the next read is not older than this call.
	Sync(ctx context.Context, path string) error
	// EnsureRoot creates the cluster's root, and then the records at paths in
	// their order, where they are missing. All are persistent and without data.
	EnsureRoot(ctx context.Context, paths ...string) error
	// Hurry says how soon a lost connection or a silent server has to be replaced.
	Hurry(limits.Notice)
	// SessionID is the present session's id, 0 when there is none. An
	// ephemeral record whose Stat.Owner differs belongs to another session.
	SessionID() int64
	// Close ends the session and waits for what it started.
	Close() error
}

// Kind is how long a record lives and how it is named.
type Kind int

const (
	// Persistent records stay until they are deleted.
	Persistent Kind = iota
	// PersistentSequential records also get the parent's create count, ten
	// digits, appended to their names.
	PersistentSequential
	// Ephemeral records go when the session that made them does.
	Ephemeral
)

// AnyVersion makes a Set or Delete unconditional.
const AnyVersion int32 = -1

// Stat is what ZooKeeper keeps about a record. Times are Unix milliseconds by
// the clock of the ensemble's leader; the high 32 bits of a zxid are the
// leader's epoch, 0 on a standalone server.
type Stat struct {
	Version      int32
	Czxid, Mzxid int64
	Ctime, Mtime int64
	Owner        int64 // session of an ephemeral record, else 0
	Children     int32 // changes whenever a child is made or deleted
}

// Record is one of those that GetAll reads.
type Record struct {
	Found bool
	Data  []byte
	Stat  Stat
}

// Epoch returns the leader's epoch of the record's last write.
func (s Stat) Epoch() int64 { return s.Mzxid >> 32 }

// Op is one operation of a Multi. Check, Create and Set are its kinds.
type Op interface{ op() }

// CheckOp holds if the record's version is the one given.
type CheckOp struct {
	Path    string
	Version int32
}

// CreateOp makes a persistent record.
type CreateOp struct {
	Path string
	Data []byte
}

// SetOp overwrites a record of the given version.
type SetOp struct {
	Path    string
	Data    []byte
	Version int32
}

func (CheckOp) op()  {}
func (CreateOp) op() {}
func (SetOp) op()    {}

var (
	// ErrNoNode: there is no record at this path.
	ErrNoNode = errors.New("zkstore: no such record")
	// ErrExists: there is a record at this path already.
	ErrExists = errors.New("zkstore: record exists")
	// ErrBadVersion: the record has changed since it was read.
	ErrBadVersion = errors.New("zkstore: record has changed")
	// ErrNotEmpty: the record has children and cannot be deleted.
	ErrNotEmpty = errors.New("zkstore: record has children")
	// ErrUnreachable: no answer came in time. A write that ends so may or may
	// not have been applied: its outcome is unknown until read back.
	ErrUnreachable = errors.New("zkstore: ZooKeeper cannot be reached")
	// ErrDenied: ZooKeeper refused the credentials or the record's ACL does.
	ErrDenied = errors.New("zkstore: ZooKeeper denied access")
)
