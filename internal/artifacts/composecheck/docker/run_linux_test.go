package docker

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// TestImageRuns builds and runs the image as a Docker engine would. It runs the commands of the
// first stage with an empty directory in place of /image, and gives the files to the
// image's user. It then runs the entry point as that user, with that directory as root.
func TestImageRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root of a process")
	}
	stages, err := parse([]byte(shipped(t, "Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "image")
	for _, c := range stages[0].Commands {
		args, _ := arguments(c)
		if c.Name() != "RUN" || strings.HasPrefix(args[0], "go mod download") {
			continue
		}
		line := strings.ReplaceAll(args[0], "/image/", root+"/")
		build := exec.CommandContext(t.Context(), "sh", "-c", line)
		build.Dir = repository
		build.Env = append(os.Environ(), "TARGETOS=", "TARGETARCH=", "VERSION=1.2.3-test")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	const uid = 65532 // must be the Dockerfile's USER
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"FLAKED_ADDR=unix:/run/flaked/flaked.sock"}
	is := map[string][]string{}
	for _, c := range stages[len(stages)-1].Commands {
		is[c.Name()], _ = arguments(c)
		if c, ok := c.(*instructions.EnvCommand); ok {
			for _, e := range c.Env {
				env = append(env, e.String())
			}
		}
	}
	command := func(args ...string) *exec.Cmd {
		return &exec.Cmd{
			Path: args[0], Args: args, Env: env, Dir: "/",
			SysProcAttr: &syscall.SysProcAttr{
				Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: uid}, Pdeathsig: syscall.SIGKILL,
			},
		}
	}
	out, err := command(append(is["ENTRYPOINT"], "version")...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "flaked 1.2.3-test\n") {
		t.Fatalf("version: %v\n%s", err, out)
	}

	var log bytes.Buffer
	node := command(append(append(is["ENTRYPOINT"], is["CMD"]...), "--dev", "--listen", "unix:/run/flaked/flaked.sock", "--admin", "off")...)
	node.Stdout, node.Stderr = &log, &log
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- node.Wait() }()
	defer func() {
		_ = node.Process.Kill()
	}()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		out, err := command(is["HEALTHCHECK"]...).CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("HEALTHCHECK: %v\n%s", err, out)
		}
		select {
		case err := <-ended:
			t.Fatalf("the node ended: %v\n%s", err, &log)
		default:
		}
	}
	if out, err := command(append(is["ENTRYPOINT"], "get", "3")...).CombinedOutput(); err != nil || bytes.Count(out, []byte("\n")) != 3 {
		t.Errorf("get: %v\n%s", err, out)
	}
	if err := node.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after SIGTERM: %v\n%s", err, &log)
		}
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
}
