package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestMapErr(t *testing.T) {
	all := []error{ErrNoNode, ErrExists, ErrBadVersion, ErrNotEmpty, ErrDenied, ErrUnreachable}
	for _, tc := range []struct{ in, want error }{ // nil: wrapped
		{zk.ErrNoNode, ErrNoNode},
		{zk.ErrNodeExists, ErrExists},
		{zk.ErrBadVersion, ErrBadVersion},
		{zk.ErrNotEmpty, ErrNotEmpty},
		{zk.ErrNoAuth, ErrDenied},
		{zk.ErrAuthFailed, ErrDenied},
		{zk.ErrInvalidACL, ErrDenied},
		{errors.New("unknown error: -124"), ErrDenied},
		{zk.ErrConnectionClosed, ErrUnreachable},
		{zk.ErrNoServer, ErrUnreachable},
		{zk.ErrSessionExpired, ErrUnreachable},
		{zk.ErrSessionMoved, ErrUnreachable},
		{zk.ErrClosing, ErrUnreachable},
		{zk.ErrShortBuffer, ErrUnreachable},
		{errors.New("unknown error: -4"), ErrUnreachable},
		{errors.New("unknown error: -7"), ErrUnreachable},
		{io.EOF, ErrUnreachable},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), ErrUnreachable},
		{net.ErrClosed, ErrUnreachable},
		{os.ErrDeadlineExceeded, ErrUnreachable},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, ErrUnreachable},
		{context.DeadlineExceeded, ErrUnreachable},
		{context.Canceled, ErrUnreachable},
		{zk.ErrAPIError, nil},
		{zk.ErrNoChildrenForEphemerals, nil},
		{zk.ErrInvalidPath, nil},
		{errors.New("unknown error: -125"), nil},
		{errors.New("what?"), nil},
	} {
		got := mapErr("get", "/x", tc.in)
		for _, sentinel := range all {
			if errors.Is(got, sentinel) != (sentinel == tc.want) {
				t.Errorf("%v became %v", tc.in, got)
			}
		}
		if tc.want == nil && !errors.Is(got, tc.in) {
			t.Errorf("%v is lost in %v", tc.in, got)
		}
		if !strings.Contains(got.Error(), "get /x") {
			t.Errorf("%q does not say where", got)
		}
	}
	if mapErr("get", "/x", nil) != nil {
		t.Error("an error of none")
	}
}
