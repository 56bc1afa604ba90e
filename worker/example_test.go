package worker_test

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/worker"
)

// An ID shows when and by which worker it was made.
func ExampleLayout_Decode() {
	layout, err := worker.ParseLayout("leaf")
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := worker.ParseID("2123840319823806551")
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := layout.Decode(id)
	fmt.Println(layout.Time(f).UTC().Format(time.RFC3339), f.Worker, f.Sequence, err)
	// Output: 2026-11-20T18:06:05Z 0 87 <nil>
}
