package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/flaked/flaked/internal/app"
	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/internal/ops/words"
)

// This file says what kept serve from starting, and what to do about it.

// bindErrorText returns the text for an error of listening on an address of --listen or --admin.
func bindErrorText(address string, err error) string {
	path, isUnix := strings.CutPrefix(address, "unix:")
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "address already in use. Check with `flaked healthcheck` whether another flaked runs there, or choose " +
			"another address"
	case isUnix && errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("directory %s not found. Create it or correct the path", filepath.Dir(path))
	case isUnix && errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("no permission to create a socket in %s. Choose a directory of the node's user, or change "+
			"the owner of this one", filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		return "no permission. Ports below 1024 are for root (or CAP_NET_BIND_SERVICE). Choose a higher port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address. `ip address` lists those that it has, and 0.0.0.0 stands " +
			"for all"
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("host %s not found. Correct the name, or give an address of this machine", e.Name)
	}
	return words.PlainError(err.Error())
}

// explainStateDir returns err. If that is an *app.StateDirError, it says what to do.
func explainStateDir(err error) error {
	e, ok := errors.AsType[*app.StateDirError](err)
	if !ok {
		return err
	}
	at := e.Dir
	if path, ok := errors.AsType[*fs.PathError](e.Err); ok {
		at = path.Path
	}
	why := ""
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		why = fmt.Sprintf("no permission to use or create %s. Create the directory for the node's user (install -d "+
			"-m 0700 -o USER %s), or give another one", at, e.Dir)
	case errors.Is(e.Err, syscall.EROFS):
		why = "the filesystem is read-only. Give a directory on a disk that can be written"
	case errors.Is(e.Err, syscall.ENOTDIR):
		why = "a part of the path is not a directory. Correct the path"
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
		why = "no space is left on its disk. Free some, or give a directory on another disk"
	case errors.Is(e.Err, fs.ErrNotExist):
		why = fmt.Sprintf("%s cannot be created. Correct the path", at)
	default:
		return fmt.Errorf("--state-dir %s: %w", e.Dir, e.Err)
	}
	return fmt.Errorf("--state-dir %s: %s", e.Dir, why)
}

// credentialError returns the usage error for files with credentials that cannot be used. It
// names the flags of the files.
func credentialError(cfg access.Config, err error) error {
	e, ok := errors.AsType[*access.FileError](err)
	if !ok {
		return usageError("%w", err)
	}
	var flags []string
	for _, of := range []struct{ flag, file string }{
		{"--tls-cert", cfg.Cert}, {"--tls-key", cfg.Key}, {"--tls-client-ca", cfg.ClientCA},
		{"--token-file", cfg.TokenFile}, {"--peer-token-file", cfg.PeerTokenFile}, {"--peer-ca", cfg.PeerCA},
	} {
		if of.file != "" && slices.Contains(e.Files, of.file) {
			flags = append(flags, of.flag)
		}
	}
	return usageError("%s: %w", strings.Join(flags, ", "), err)
}
