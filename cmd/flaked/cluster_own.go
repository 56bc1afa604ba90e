package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/audit"
	"github.com/flaked/flaked/zkstore"
)

// clusterOwn gives the records to the users that this command authenticates as.
func clusterOwn(c *cli.Context) error {
	auth, err := zkAuth(c)
	if err != nil {
		return err
	}
	if auth == "" {
		return usageError("--zk-auth-file is required. Give a file with user:password on each line, or set FLAKED_ZK_AUTH")
	}
	return withStore(c, func(ctx context.Context, store zkstore.Store) error {
		if _, err := coordinator.ReadCluster(ctx, store); err != nil {
			return err
		}
		recorder := store.(*audit.Recorder) // of withStore
		recorder.Begin(ctx)
		records, err := recorder.Store.(*zkstore.ZK).OwnRecords(ctx)
		if err != nil {
			return fmt.Errorf("%w. %d records were changed. Run the command again", err, records)
		}
		_, err = fmt.Fprintf(c.App.Writer, "changed the owners of %d records of cluster %s\n", records, c.String("cluster"))
		return err
	})
}
