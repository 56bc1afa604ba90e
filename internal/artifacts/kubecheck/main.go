// Command kubecheck checks the kustomizations in deploy/kubernetes with Kubernetes' own
// code. It builds them by kustomize, decodes the result strictly, and runs the API
// server's validation, its warnings and the restricted level of Pod Security. It is a
// module of its own, so that flaked does not depend on Kubernetes. `make kubernetes` runs it.
//
//	kubecheck DIR...
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	status := 0
	for _, dir := range os.Args[1:] {
		n, err := check(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", dir, err)
			status = 1
			continue
		}
		fmt.Printf("%s: %d objects, nothing to complain of\n", dir, n)
	}
	os.Exit(status)
}
