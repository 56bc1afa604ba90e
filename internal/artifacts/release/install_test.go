package main

import (
	"os"
	"os/exec"
	"testing"
)

// TestPackageInstallsRunsAndPurges installs the package FLAKED_TEST_DEB, which must have the version
// FLAKED_TEST_DEB_VERSION. `make release-check` sets both.
func TestPackageInstallsRunsAndPurges(t *testing.T) {
	deb, version := os.Getenv("FLAKED_TEST_DEB"), os.Getenv("FLAKED_TEST_DEB_VERSION")
	if deb == "" {
		t.Skip("no package: make release-check makes one and installs it")
	}
	if os.Geteuid() != 0 {
		t.Fatal("a package is installed by root")
	}
	out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child",
		"testdata/install.sh", deb, version).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
