package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestMapErr(t *testing.T) {
	all := []error{ErrNoNode, ErrExists, ErrBadVersion, ErrNotEmpty, ErrDenied, ErrUnreachable, ErrQuota, ErrLocalSession}
	for _, tc := range []struct{ in, want error }{ // nil: wrapped
		{zk.ErrNoNode, ErrNoNode},
		{zk.ErrNoAuth, ErrDenied},
		{errors.New("unknown error: -124"), ErrDenied},
		{zk.ErrSessionExpired, ErrUnreachable},
		{errors.New("unknown error: -7"), ErrUnreachable},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), ErrUnreachable},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, ErrUnreachable},
		{context.Canceled, ErrUnreachable},
		{zk.ErrNoChildrenForEphemerals, nil},
		{errors.New("unknown error: -125"), ErrQuota},
		{errors.New("unknown error: -120"), ErrLocalSession},
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

// The codes are those of KeeperException.Code in ZooKeeper 3.9.5.
func TestEveryCodeOfZooKeeperHasWords(t *testing.T) {
	byTheLibrary := []int{-8, -100, -101, -102, -103, -108, -110, -111, -112, -114, -115, -118, -123}
	for _, code := range []int{
		-1, -2, -3, -4, -5, -6, -7, -8, -12, -13, -14, -100, -101, -102, -103, -108, -110, -111, -112, -113, -114,
		-115, -118, -119, -120, -121, -122, -123, -124, -125, -127,
	} {
		got := mapErr("set", "/x", fmt.Errorf("unknown error: %d", code))
		if !slices.Contains(byTheLibrary, code) && strings.Contains(got.Error(), "unknown error") {
			t.Errorf("%d: %v", code, got)
		}
	}
}
