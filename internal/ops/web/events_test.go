package web

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestEvents(t *testing.T) {
	events := new(Events)
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "flaked", Level: hclog.Error, Output: io.Discard})
	log.RegisterSink(events)
	node := log.Named("node")
	node.Debug("not for people")
	node.With("worker", 7).Warn("heartbeat failed", "error", errors.New("cut off"))
	log.Info("serving")
	want := []Event{
		{1, 1234, "warn", "flaked.node", "heartbeat failed", [][2]string{{"worker", "7"}, {"error", "cut off"}}},
		{2, 1234, "info", "flaked", "serving", [][2]string{}},
	}
	for i := range events.last {
		events.last[i].AtMs = 1234
	}
	if got := events.Last(10); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if got := events.Last(1); !reflect.DeepEqual(got, want[1:]) {
		t.Errorf("the last one: %+v", got)
	}
}

func TestEventsDropTheOldest(t *testing.T) {
	events := new(Events)
	for i := range keptEvents + 3 {
		events.Accept("flaked", hclog.Info, fmt.Sprint(i))
	}
	if got := events.Last(1000); len(got) != keptEvents || got[0].Message != "3" || got[0].ID != 4 {
		t.Errorf("%d events, from %+v", len(got), got[0])
	}
}
