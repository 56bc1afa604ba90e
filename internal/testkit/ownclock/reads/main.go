// Command reads writes timeguard's wall clock, in Unix ns, for each line that it reads. The test of
// ownclock runs it.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/flaked/flaked/timeguard"
)

func main() {
	clock := timeguard.System()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(clock.Wall())
	}
}
