package store

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxRequest bounds the payload of one request, in bytes. A server closes the connection
// when a request is larger than 1 MiB.
const maxRequest = 1_000_000

// Every Store makes these checks before it sends anything.

func checkCall(op, path string) error {
	if err := checkPath(path); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

func checkSize(op, path string, n int) error {
	if n > maxRequest {
		return fmt.Errorf("%s %s: %d bytes exceed the limit of %d", op, path, n, maxRequest)
	}
	return nil
}

func checkCreate(path string, data []byte, kind Kind) error {
	if kind < Persistent || kind > Ephemeral {
		return fmt.Errorf("create %s: invalid kind of record %d", path, kind)
	}
	if path == "/" {
		return errors.New("create /: only EnsureRoot can create the root")
	}
	return errors.Join(checkCall("create", path), checkSize("create", path, len(data)))
}

func checkRoot(paths []string) error {
	for _, path := range paths {
		if err := checkCreate(path, nil, Persistent); err != nil {
			return err
		}
	}
	return nil
}

func checkOps(ops []Op) error {
	total := 0
	for _, op := range ops {
		_, path, n := opParts(op)
		if path == "" {
			return fmt.Errorf("multi: unknown operation or empty path: %T", op)
		}
		if err := checkCall("multi", path); err != nil {
			return err
		}
		total += n + len(path) + 64
	}
	return checkSize("multi", fmt.Sprintf("of %d", len(ops)), total)
}

func opParts(op Op) (name, path string, size int) {
	switch op := op.(type) {
	case CheckOp:
		return "check", op.Path, 0
	case CreateOp:
		return "create", op.Path, len(op.Data)
	case SetOp:
		return "set", op.Path, len(op.Data)
	case DeleteOp:
		return "delete", op.Path, 0
	}
	return "", "", 0
}

func (op CreateOp) kind() Kind {
	if op.Ephemeral {
		return Ephemeral
	}
	return Persistent
}

func describeOp(i int, op Op) string {
	name, path, _ := opParts(op)
	return fmt.Sprintf("operation %d, %s %s", i, name, path)
}

// checkPath returns an error if path breaks ZooKeeper's own rules. Every Store refuses such
// a path in the same way, before it sends anything.
func checkPath(path string) error {
	if path == "/" {
		return nil
	}
	if path == "" || path[0] != '/' {
		return fmt.Errorf("path %q must begin with a slash", path)
	}
	if !utf8.ValidString(path) {
		return fmt.Errorf("path %q must be valid UTF-8", path)
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		switch part {
		case "":
			return fmt.Errorf("path %q must not have an empty part or end in a slash", path)
		case ".", "..":
			return fmt.Errorf("path %q must not have . or .. as a part", path)
		}
		for _, r := range part {
			if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xe000 && r <= 0xf8ff || r >= 0xfff0 {
				return fmt.Errorf("path %q contains %U, which ZooKeeper does not allow", path, r)
			}
		}
	}
	return nil
}
