package sequence_test

import (
	"fmt"

	"github.com/flaked/flaked/sequence"
)

// A program at the edge tells the values of a salted sequence from made-up ones, without a lookup. The key
// and the map are those of `flaked seq show NAME -o json`.
func ExampleValues_Position() {
	key, err := sequence.ParseKey("000102030405060708090a0b0c0d0e0f")
	if err != nil {
		fmt.Println(err)
		return
	}
	tickets := sequence.NewValues(sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript, Salt: 8}, key)
	for _, number := range []int64{256439, 256440} {
		position, ours := tickets.Position(number)
		fmt.Println(number, position, ours)
	}
	// Output:
	// 256439 1000 true
	// 256440 0 false
}
