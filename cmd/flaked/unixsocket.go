package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// unixOptions say who may connect to a unix socket.
type unixOptions struct {
	mode fs.FileMode
	gid  int // -1 for the system's choice
}

const defaultUnixMode = "0660"

// parseUnixOptions reads --unix-mode and --unix-group.
func parseUnixOptions(mode, group string) (unixOptions, error) {
	o := unixOptions{gid: -1}
	bits, err := strconv.ParseUint(mode, 8, 32)
	if err != nil || bits > 0o777 {
		return o, usageError("--unix-mode: %q is not a mode. Give an octal number up to 0777, such as 0660", mode)
	}
	o.mode = fs.FileMode(bits)
	if group == "" {
		return o, nil
	}
	// The name of a group goes before a number, as with chgrp.
	id := group
	if g, err := user.LookupGroup(group); err == nil {
		id = g.Gid
	}
	if o.gid, err = strconv.Atoi(id); err != nil || o.gid < 0 {
		return o, usageError("--unix-group: there is no group %q on this machine. Give the name of a group (getent "+
			"group lists them) or a number", group)
	}
	return o, nil
}

// listenUnix listens on a unix socket. A node that was killed leaves its socket in the file
// system, where nobody answers and nobody else can listen. listenUnix replaces that socket.
func listenUnix(path string, o unixOptions) (net.Listener, error) {
	// Of two nodes that find an abandoned socket, the slower would remove the new socket of the
	// faster. A lock on the directory prevents that, and leaves nothing behind. A directory
	// that this user cannot open stays unlocked.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		defer dir.Close()
		if err := lock(dir); err != nil {
			return nil, err
		}
	}
	l, err := bindClosed(path)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(path) && os.Remove(path) == nil {
		l, err = bindClosed(path)
	}
	if err != nil {
		return nil, err
	}
	if err := o.apply(path); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// lock waits no longer than another node may need. On a file system without locks
// it returns nil at once.
func lock(dir *os.File) error {
	const patience, every = 2 * time.Second, 10 * time.Millisecond
	for waited := time.Duration(0); !tryLock(dir); waited += every {
		if waited >= patience {
			return fmt.Errorf("another process locks %s. Stop it (fuser %[1]s), or choose another directory",
				dir.Name())
		}
		time.Sleep(every)
	}
	return nil
}

// apply lets in the users that o names. It sets the group first, as the mode applies to it.
func (o unixOptions) apply(path string) error {
	if o.gid >= 0 {
		if err := os.Lchown(path, -1, o.gid); errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("--unix-group: only root, or a user in group %d, may give a socket to that group: %w",
				o.gid, err)
		} else if err != nil {
			return fmt.Errorf("--unix-group: %w", err)
		}
	}
	if err := os.Chmod(path, o.mode); err != nil {
		return fmt.Errorf("--unix-mode: %w", err)
	}
	return nil
}

// isAbandoned reports whether path is a socket that nobody listens on. Any other
// file there is left alone.
func isAbandoned(path string) bool {
	if fi, err := os.Lstat(path); err != nil || fi.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
