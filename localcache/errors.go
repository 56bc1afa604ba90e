package localcache

import "errors"

var (
	// ErrLocked: another process has the state directory open.
	ErrLocked = errors.New("state directory is in use")
	// ErrUnsafeDir: the path is empty, a symbolic link or not a directory, or was replaced while it was being opened.
	// Or the directory belongs to another user, or is open to other users and Open could not or must not change that.
	ErrUnsafeDir = errors.New("state directory refused")
	// ErrUnsafeFile: the state file is not a regular file, belongs to another user, has
	// several names, or was replaced while it was open.
	ErrUnsafeFile = errors.New("state file refused")
	// ErrGone: another file or directory, or none, has the name of an open one.
	ErrGone = errors.New("deleted, renamed or replaced")
	// ErrFilesystem: locks or syncs are not reliable on the filesystem.
	ErrFilesystem = errors.New("filesystem refused")
	// ErrSystem: locks and syncs are known to be reliable on Linux and macOS only.
	ErrSystem = errors.New("a node keeps its worker on disk, which works on Linux and macOS only. Run the node " +
		"there, or in a Linux container, and ask it from here with a client")
)
