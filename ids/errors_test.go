package ids

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUnavailableSaysWhatEndedTheCall(t *testing.T) {
	refused := errors.New("connection refused by a:1")
	for _, row := range []struct {
		ended, last error
		want        string
	}{
		{nil, nil, "flaked: no node gave an ID or a value"},
		{nil, refused, "flaked: no node gave an ID or a value: connection refused by a:1"},
		{context.DeadlineExceeded, refused, "flaked: no node gave an ID or a value " +
			"before the deadline: connection refused by a:1"},
		{context.Canceled, nil, "flaked: no node gave an ID or a value before the context was cancelled"},
	} {
		if got := Unavailable(row.ended, row.last).Error(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

func TestReplyErrorFields(t *testing.T) {
	for _, row := range []struct {
		e      ReplyError
		text   string
		after  time.Duration
		reason string
	}{
		{ReplyError{"a:1", "CLOCK", "the clock is behind the last ID behind_ms=9 retry_after_ms=9"},
			"a:1 answered -CLOCK the clock is behind the last ID behind_ms=9 retry_after_ms=9", 9 * time.Millisecond,
			""},
		{ReplyError{"", "ERR", "reason=no-sequence x"}, "-ERR reason=no-sequence x", 0, "no-sequence"},
		{ReplyError{Code: "CLOCK", Text: "retry_after_ms=99999999999"}, "-CLOCK retry_after_ms=99999999999", time.Hour,
			""},
		{ReplyError{Code: "CLOCK", Text: "retry_after_ms=-5"}, "-CLOCK retry_after_ms=-5", 0, ""},
		{ReplyError{Code: "CLOCK", Text: "retry_after_ms=99999999999999999999"},
			"-CLOCK retry_after_ms=99999999999999999999", 0, ""},
	} {
		if e := &row.e; e.Error() != row.text || e.RetryAfter() != row.after || e.Reason() != row.reason {
			t.Errorf("%+v: %q %s %q", row.e, e.Error(), e.RetryAfter(), e.Reason())
		}
	}
}
