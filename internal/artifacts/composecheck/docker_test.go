package composecheck

import (
	"os"
	"os/exec"
	"testing"
)

// TestDockerFiles runs the tests of the module docker. It skips them if the module's libraries
// have not been downloaded, or fails under FLAKED_TEST_CLIENTS=require.
func TestDockerFiles(t *testing.T) {
	t.Parallel()
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = "docker"
		cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		if os.Getenv("FLAKED_TEST_CLIENTS") == "" {
			cmd.Env = append(cmd.Env, "GOPROXY=off") // only an explicit request may download
		}
		return cmd.CombinedOutput()
	}
	if out, err := run("list", "-deps", "-test", "."); err != nil {
		if os.Getenv("FLAKED_TEST_CLIENTS") == "require" {
			t.Fatalf("FLAKED_TEST_CLIENTS=require, but no libraries of Docker: %v\n%s; scripts/get-clients.sh gets them", err, out)
		}
		t.Skipf("no libraries of Docker: %v\n%s; scripts/get-clients.sh gets them", err, out)
	}
	if out, err := run("test", "-vet=off", "-count=1", "."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
