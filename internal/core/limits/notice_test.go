package limits

import (
	"errors"
	"testing"
	"time"
)

// TestNoticeIsBelowTheConfirmingTime goes over heartbeats and confirming times. For each
// pair a holder notices a loss in time, or NoticeWithin refuses the pair.
func TestNoticeIsBelowTheConfirmingTime(t *testing.T) {
	taken, refused := 0, 0
	for confirm := time.Duration(0); confirm <= time.Hour; confirm += 1 + confirm/7 {
		for heartbeat := MinHeartbeat; heartbeat <= time.Hour; heartbeat += 1 + heartbeat/9 {
			n, err := NoticeWithin(confirm, heartbeat)
			if fits := heartbeat <= MaxHeartbeat(confirm); fits != (err == nil) {
				t.Fatalf("confirming time %s, heartbeat %s: %v, and the longest heartbeat is %s", confirm, heartbeat,
					err, MaxHeartbeat(confirm))
			}
			if err != nil {
				if tooShort := new(TooShortError); !errors.As(err, &tooShort) {
					t.Fatal(err)
				}
				refused++
				continue
			}
			taken++
			if noticed := n.Heartbeat + n.Answer + n.Redial + noticeCalls*n.Call; noticed >= confirm {
				t.Fatalf("confirming time %s, heartbeat %s: noticed within %s", confirm, heartbeat, noticed)
			}
			if parts := n.Pause() + n.Lookup() + n.Dial(); parts > n.Redial {
				t.Fatalf("confirming time %s, heartbeat %s: redialling takes %s of %s", confirm, heartbeat, parts,
					n.Redial)
			}
			if n.Answer < 100*time.Millisecond || n.Dial() < 50*time.Millisecond || n.Call < 7*time.Millisecond {
				t.Fatalf("confirming time %s, heartbeat %s: %+v is too little for a server on the same machine",
					confirm, heartbeat, n)
			}
		}
	}
	if taken == 0 || refused == 0 {
		t.Errorf("%d taken, %d refused", taken, refused)
	}
}

func TestNoticeOfTheDefaults(t *testing.T) {
	n, err := NoticeWithin(12*time.Second, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := Notice{Heartbeat: 3 * time.Second, Answer: 2250 * time.Millisecond, Redial: 2250 * time.Millisecond,
		Call: 168750 * time.Microsecond}
	if n != want {
		t.Errorf("%+v, want %+v", n, want)
	}
}
