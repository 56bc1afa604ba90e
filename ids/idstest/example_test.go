package idstest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/ids/idstest"
)

// A test chooses the next value, and lets calls fail.
func Example() {
	ctx := context.Background()
	source := idstest.New()
	source.SetNext("order", 41)
	fmt.Println(source.Next(ctx))
	fmt.Println(source.Sequence("order").Next(ctx))

	source.Fail(ids.Unavailable(nil, &ids.ReplyError{Code: ids.NOTREADY, Text: "a test"}))
	_, err := source.Next(ctx)
	fmt.Println(errors.Is(err, ids.ErrUnavailable))
	source.Fail(nil)
	fmt.Println(source.Next(ctx))
	// Output:
	// 1 <nil>
	// 41 <nil>
	// true
	// 2 <nil>
}
