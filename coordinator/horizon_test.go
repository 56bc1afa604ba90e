package coordinator

import (
	"testing"
	"time"
)

func TestHorizon(t *testing.T) {
	const confirm = 10 * time.Second
	at := func(s int64) int64 { return s * int64(time.Second) }
	h := horizon{}.saw(100, at(1))
	if h.usable != 100 {
		t.Errorf("the first one: %+v", h)
	}
	h = h.saw(150, at(2)).saw(120, at(3)).saw(200, at(5))
	if h.known != 200 || h.at(at(12)-1, confirm).usable != 100 {
		t.Errorf("usable at once: %+v", h)
	}
	if h = h.at(at(12), confirm); h.usable != 150 || h.at(at(22)-1, confirm).usable != 150 ||
		h.at(at(22), confirm).usable != 200 {
		t.Errorf("%+v", h)
	}
	cl := Cluster{LeaseMs: 6400, ConfirmMs: 800, Horizon: 5000}
	if next := cl.nextHorizon(10_000); next != 10_000+6400+clocksApart+100+2*1000 {
		t.Errorf("the next one is %d", next)
	}
	if next := cl.nextHorizon(-20_000); next != 5000 {
		t.Errorf("it goes back to %d", next)
	}
	const lease = time.Second
	if cl.withHorizon(3000, lease) != cl || cl.withHorizon(3001, lease).Horizon != cl.nextHorizon(3001) ||
		cl.withHorizon(9000, 0) != cl {
		t.Error("it is raised at another distance")
	}
}
