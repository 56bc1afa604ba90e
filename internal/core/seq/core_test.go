package seq

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// simCluster is the record of a cluster that begins, with the workers of so many nodes.
func simCluster(nodes int) coordinator.Cluster {
	return coordinator.Cluster{UUID: "c", Slots: 1024, HighestSlot: nodes - 1}
}

// simClock is the clock of an operator, at *now ms since simEpoch. asleep is called after each sleep.
type simClock struct {
	now    *int64
	asleep func()
}

func (c simClock) Now() time.Time { return time.UnixMilli(simEpoch + *c.now) }

func (c simClock) Sleep(ctx context.Context, d time.Duration) error {
	*c.now += d.Milliseconds()
	c.asleep()
	return ctx.Err()
}

// raiseIncarnation does what package coordinator does after a finding: it raises the incarnation of /cluster, unless it
// is above known already. A record that is missing comes back with the workers of so many nodes.
func raiseIncarnation(st store.Store, known int64, nodes int) error {
	ctx := context.Background()
	for {
		data, stat, err := st.Get(ctx, record.ClusterPath)
		missing := errors.Is(err, store.ErrNoNode)
		if err != nil && !missing {
			return err
		}
		c := simCluster(nodes)
		if !missing {
			if err := json.Unmarshal(data, &c); err != nil {
				return err
			}
			if c.Incarnation > known {
				return nil
			}
		}
		c.Incarnation = max(c.Incarnation, known) + 1
		if missing {
			if err := st.EnsureRoot(ctx); err != nil {
				return err
			}
			_, err = st.Create(ctx, record.ClusterPath, store.Marshal(c), store.Persistent)
		} else {
			_, err = st.Set(ctx, record.ClusterPath, store.Marshal(c), stat.Version)
		}
		if !store.Outpaced(err) {
			return err
		}
	}
}

// createCluster makes the records of package coordinator that sequences need.
func createCluster(st store.Store, nodes int) {
	err := st.EnsureRoot(context.Background(), "/workers")
	if err == nil {
		_, err = st.Create(context.Background(), record.ClusterPath, store.Marshal(simCluster(nodes)), store.Persistent)
	}
	if err != nil {
		panic(err) // the session has no faults
	}
}
