package main

import (
	"archive/tar"
	"bytes"
	"maps"
	"os"
	"path"
	"slices"
	"time"
)

// writeArchive writes a tar.gz archive to the path to. files maps the path of each file,
// below dir in the archive, to a file on disk. The same contents give the same bytes:
// entries are sorted, belong to root and have the time when.
func writeArchive(to, dir string, files map[string]string, when time.Time) error {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if name == "flaked" {
			mode = 0o755
		}
		head := &tar.Header{Name: path.Join(dir, name), Mode: mode, Size: int64(len(data)), ModTime: when, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	data, err := gzipped(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
