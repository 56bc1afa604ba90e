package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/limits"
)

// Store is a tree of small versioned records, the part of ZooKeeper that flaked needs. A
// write can be conditional on a version.
//
// Paths are relative to the cluster's root and begin with a slash
// ("/cluster", "/workers/0007"). Every call returns by the deadline of its
// context, whatever the server does. A call with a context of OnSession is made in that session only.
type Store interface {
	// Get reads a record. It returns ErrNoNode if the record does not exist.
	Get(ctx context.Context, path string) ([]byte, Stat, error)
	// GetAll reads several records in about one round trip, and returns them in the order
	// of paths. The reads are not atomic and happen in no particular order. A missing
	// record is not an error: its Found is false.
	GetAll(ctx context.Context, paths ...string) ([]Record, error)
	// Children lists the names of the records directly below path, sorted. It returns
	// ErrNoNode if path does not exist.
	Children(ctx context.Context, path string) ([]string, error)
	// Create creates a record and returns its path. The path differs from the given one
	// only if kind is PersistentSequential. Create returns ErrExists if the record exists
	// already, and ErrNoNode if the parent does not exist.
	Create(ctx context.Context, path string, data []byte, kind Kind) (string, error)
	// Set overwrites a record if it has the given version, and returns its new Stat.
	// AnyVersion matches every version. Set returns ErrBadVersion if the version differs,
	// and ErrNoNode if the record does not exist.
	Set(ctx context.Context, path string, data []byte, version int32) (Stat, error)
	// Delete removes a record if it has the given version. AnyVersion matches every
	// version. Delete returns ErrBadVersion if the version differs, ErrNotEmpty if the
	// record has children, and ErrNoNode if the record does not exist.
	Delete(ctx context.Context, path string, version int32) error
	// Multi applies all operations or none. The error is that of the first
	// operation that could not be applied.
	Multi(ctx context.Context, ops ...Op) error
	// Sync waits until this session's server has caught up with the leader,
	// so that the next read is not older than this call.
	Sync(ctx context.Context, path string) error
	// EnsureRoot creates the cluster's root and then the records at paths, in their order.
	// It skips records that exist. The new records are persistent and hold no data.
	EnsureRoot(ctx context.Context, paths ...string) error
	// SetNotice sets how soon the store must replace a lost connection or a silent server.
	SetNotice(limits.Notice)
	// SessionID returns the id of the present session, 0 if there is none. An ephemeral
	// record whose Stat.EphemeralOwner differs belongs to another session.
	SessionID() int64
	// Close ends the session and waits until the store's goroutines have ended.
	Close() error
}

// Kind says how long a record lives, and whether its name gets a sequence number.
type Kind int

const (
	// Persistent records stay until a client deletes them.
	Persistent Kind = iota
	// PersistentSequential records are persistent. ZooKeeper appends the parent's create
	// count to their names, in ten digits.
	PersistentSequential
	// Ephemeral records are deleted when the session that created them ends.
	Ephemeral
)

// AnyVersion makes a Set or Delete unconditional.
const AnyVersion int32 = -1

// Stat is the metadata that ZooKeeper keeps about a record, under ZooKeeper's names. Times are Unix milliseconds by
// the clock of the ensemble's leader. The high 32 bits of a zxid are the leader's epoch,
// which is 0 on a server that was always standalone.
type Stat struct {
	Version        int32
	Czxid, Mzxid   int64
	Ctime, Mtime   int64
	EphemeralOwner int64 // session of an ephemeral record, else 0
	Cversion       int32 // changes whenever a child is made or deleted
	NumChildren    int32 // number of children
}

// Record is one result of GetAll.
type Record struct {
	Found bool
	Data  []byte
	Stat  Stat
}

// Epoch returns the leader's epoch of the record's last write.
func (s Stat) Epoch() int64 { return s.Mzxid >> 32 }

// Op is one operation of a Multi: a CheckOp, a CreateOp, a SetOp or a DeleteOp.
type Op interface{ op() }

// CheckOp fails the Multi unless the record has the given version. AnyVersion matches every
// version of a record that exists.
type CheckOp struct {
	Path    string
	Version int32
}

// CreateOp creates a persistent record, or an ephemeral one.
type CreateOp struct {
	Path      string
	Data      []byte
	Ephemeral bool
	// Secret: nobody but the authenticated user may read it. Without authentication anybody may.
	Secret bool
}

// SetOp overwrites a record if it has the given version. AnyVersion matches every version.
type SetOp struct {
	Path    string
	Data    []byte
	Version int32
}

// DeleteOp removes a record if it has the given version. AnyVersion matches every version.
type DeleteOp struct {
	Path    string
	Version int32
}

func (CheckOp) op()  {}
func (CreateOp) op() {}
func (SetOp) op()    {}
func (DeleteOp) op() {}

var (
	// ErrNoNode: there is no record at this path.
	ErrNoNode = errors.New("no such record")
	// ErrExists: there is a record at this path already.
	ErrExists = errors.New("record exists")
	// ErrBadVersion: the record has changed since it was read.
	ErrBadVersion = errors.New("record has changed")
	// ErrNotEmpty: the record has children and cannot be deleted.
	ErrNotEmpty = errors.New("record has children")
	// ErrUnreachable: no answer came in time. The outcome of a write that fails so is
	// unknown: a server may have applied it, or may still apply it a moment later.
	ErrUnreachable = errors.New("ZooKeeper cannot be reached")
	// ErrClosed: the store was closed. It comes with ErrUnreachable, and no retry helps.
	ErrClosed = errors.New("the store is closed")
	// ErrDenied: ZooKeeper refused the credentials, or the record's ACL forbids the call.
	ErrDenied = errors.New("ZooKeeper denied access")
	// ErrRefused: ZooKeeper's configuration does not allow the write, which was not made.
	ErrRefused = errors.New("ZooKeeper refused the write")
	// ErrQuota is an ErrRefused: the record would exceed a quota.
	ErrQuota = fmt.Errorf("%w, because a quota is reached", ErrRefused)
	// ErrLocalSession is an ErrRefused: a local session may not have ephemeral records.
	ErrLocalSession = fmt.Errorf("%w, because its servers use local sessions", ErrRefused)
)

// sessionKey is the key of a context's session.
type sessionKey struct{}

var errOtherSession = errors.New("the session has ended")

// OnSession returns a context for calls that must not be made in another session than id. In
// another one they are not sent, and return ErrUnreachable.
func OnSession(ctx context.Context, id int64) context.Context {
	return context.WithValue(ctx, sessionKey{}, id)
}

// Outpaced reports whether a write failed because another one was faster.
func Outpaced(err error) bool {
	return errors.Is(err, ErrBadVersion) || errors.Is(err, ErrExists) || errors.Is(err, ErrNoNode)
}
