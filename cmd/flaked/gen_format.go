package main

import (
	"strings"

	"github.com/flaked/flaked/worker"
)

func encodingNames() string {
	var names []string
	for _, e := range worker.Encodings() {
		names = append(names, e.String())
	}
	return strings.Join(names, ", ")
}
