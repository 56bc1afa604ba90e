//go:build !linux

package composecheck

import "testing"

func runImage(t *testing.T, _ Image) { t.Skip("the image is of Linux") }
