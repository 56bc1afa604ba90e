package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"
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
func listenUnix(path string, o unixOptions) (*net.UnixListener, error) {
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
	conn, err := net.Dial("unix", path) // it asks nothing, so any process counts
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
