package logqueue

import (
	"slices"
	"testing"
	"time"
)

const patience = 10 * time.Second

// A reader that stands still loses what finds no room, and hears how much that was. The rest comes
// in its order.
func TestQueueOfAReaderThatStandsStill(t *testing.T) {
	free, holds := make(chan struct{}), make(chan struct{}, Room+1)
	var got []int
	var lost int64
	q := New(func(line int) {
		holds <- struct{}{}
		<-free
		got = append(got, line)
	}, func(n int64) { lost += n })
	q.Put(0)
	<-holds // the reader has a line and stands still
	for i := 1; i <= Room+5; i++ {
		q.Put(i)
	}
	close(free)
	q.Close(patience)
	want := make([]int, Room+1)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(got, want) || lost != 5 {
		t.Errorf("%d lines from %d to %d, %d lost", len(got), got[0], got[len(got)-1], lost)
	}
	q.Put(1)
	q.Close(patience) // may be repeated
}

func TestCloseGivesUp(t *testing.T) {
	free := make(chan struct{})
	q := New(func(int) { <-free }, func(int64) {})
	q.Put(1)
	q.Close(time.Millisecond)
	select {
	case <-q.ended:
		t.Error("the reader holds a line")
	default:
	}
	close(free)
	<-q.ended
}
