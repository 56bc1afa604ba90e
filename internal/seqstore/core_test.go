package seqstore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/flaked/flaked/internal/zkstore"
)

// raiseIncarnation does what package coordinator does after a finding: it raises the incarnation of /cluster, unless it is above
// known already.
func raiseIncarnation(store zkstore.Store, known int64) error {
	ctx := context.Background()
	for {
		data, stat, err := store.Get(ctx, clusterPath)
		missing := errors.Is(err, zkstore.ErrNoNode)
		if err != nil && !missing {
			return err
		}
		c := clusterRecord{UUID: "c"}
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
			if err := store.EnsureRoot(ctx); err != nil {
				return err
			}
			_, err = store.Create(ctx, clusterPath, mustMarshal(c), zkstore.Persistent)
		} else {
			_, err = store.Set(ctx, clusterPath, mustMarshal(c), stat.Version)
		}
		if !outpaced(err) {
			return err
		}
	}
}

// createCluster makes the records of package coordinator that sequences need.
func createCluster(store zkstore.Store) {
	err := store.EnsureRoot(context.Background(), "/workers")
	if err == nil {
		_, err = store.Create(context.Background(), clusterPath, mustMarshal(clusterRecord{UUID: "c"}), zkstore.Persistent)
	}
	if err != nil {
		panic(err) // the session has no faults
	}
}
