package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// writeSBOM writes the list of the modules that the program links, in CycloneDX's JSON, to
// the path to.
func writeSBOM(ctx context.Context, o options, program, to string) error {
	// The subcommand bin reads the modules from the program. The subcommand app wants a git
	// repository with tags.
	gomod := exec.CommandContext(ctx, "go", "run", o.sbom, "bin", "-json", "-noserial", "-notimestamp", "-std", "-output-version", "1.6", "-version", o.version, program)
	gomod.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var report bytes.Buffer
	gomod.Stderr = &report
	out, err := gomod.Output()
	if err != nil {
		return fmt.Errorf("cyclonedx-gomod: %w\n%s", err, report.Bytes())
	}
	out, err = reproducibleSBOM(out)
	if err != nil {
		return fmt.Errorf("cyclonedx-gomod: %w", err)
	}
	return os.WriteFile(to, out, 0o644)
}

// reproducibleSBOM returns an SBOM without the checksums of the program that made it. `go run`
// builds that program, and other directories give another program. Keys are sorted.
func reproducibleSBOM(sbom []byte) ([]byte, error) {
	var all struct {
		Metadata struct {
			Tools []map[string]any `json:"tools"`
		} `json:"metadata"`
		SerialNumber string `json:"serialNumber"`
		Components   []any  `json:"components"`
	}
	var out map[string]any
	for _, v := range []any{&all, &out} {
		if err := json.Unmarshal(sbom, v); err != nil {
			return nil, err
		}
	}
	metadata, _ := out["metadata"].(map[string]any)
	if len(all.Components) == 0 || len(all.Metadata.Tools) == 0 || all.SerialNumber != "" || metadata["timestamp"] != nil {
		return nil, fmt.Errorf("the SBOM must have components and tools, but no serial number and no timestamp:\n%.1000s", sbom)
	}
	for _, tool := range all.Metadata.Tools {
		delete(tool, "hashes")
	}
	metadata["tools"] = all.Metadata.Tools
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(out)
	return b.Bytes(), err
}
