//go:build linux

package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// image is a container image of one program and a few directories, as the Dockerfile's.
type image struct {
	name    string
	user    string // UID:GID
	program string // a file of this machine
	at      string // its path in the image
	command string // its default argument
}

// load gives an image to containerd on all nodes, without a registry.
func load(t testing.TB, i image) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	must(t, os.WriteFile(file, i.archive(t), 0o644))
	for _, n := range []string{"n1", "n2", "n3"} {
		run(t, "ctr", "-a", filepath.Join(files, n, "containerd.sock"), "-n", "k8s.io", "images", "import", file)
	}
}

// archive returns the image in the format of `docker save`.
func (i image) archive(t testing.TB) []byte {
	program, err := os.ReadFile(i.program)
	must(t, err)
	var uid, gid int
	_, err = fmt.Sscanf(i.user, "%d:%d", &uid, &gid)
	must(t, err)
	var layer []tar.Header
	for _, dir := range []string{"usr/", "usr/local/", "usr/local/bin/", "run/", "run/flaked/", "tmp/", "var/", "var/lib/"} {
		layer = append(layer, tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, Uid: uid, Gid: gid})
	}
	layer = append(layer, tar.Header{Typeflag: tar.TypeDir, Name: "var/lib/flaked/", Mode: 0o700, Uid: uid, Gid: gid},
		tar.Header{Name: i.at, Mode: 0o755, Uid: uid, Gid: gid, Size: int64(len(program))})
	root := archived(t, layer, program)
	process := map[string]any{"User": i.user, "Entrypoint": []string{"/" + i.at}, "Cmd": strings.Fields(i.command),
		"Env": []string{"FLAKED_STATE_DIR=/var/lib/flaked"}}
	config, err := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux", "config": process,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(root))}}})
	must(t, err)
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{i.name}, "Layers": []string{"layer.tar"}}})
	must(t, err)
	return archived(t, []tar.Header{
		{Name: "config.json", Mode: 0o644, Size: int64(len(config))}, {Name: "layer.tar", Mode: 0o644, Size: int64(len(root))},
		{Name: "manifest.json", Mode: 0o644, Size: int64(len(manifest))},
	}, config, root, manifest)
}

// archived returns an archive. contents are those of its files.
func archived(t testing.TB, headers []tar.Header, contents ...[]byte) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		must(t, w.WriteHeader(&h))
		if h.Typeflag != tar.TypeDir {
			_, err := w.Write(contents[0])
			must(t, err)
			contents = contents[1:]
		}
	}
	must(t, w.Close())
	return out.Bytes()
}
