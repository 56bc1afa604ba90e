// Package composecheck checks docker-compose.yml and the Dockerfile without a
// Docker engine: that the former parses with no key unknown to the Compose
// Specification (as far as we use it), and its parts refer to each other rightly;
// that BuildKit's parser takes the latter, and that what it builds runs in an
// empty root. It says nothing about whether the containers find each other.
package composecheck

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// file is the part of the Compose Specification that we use. A key that is
// missing here fails to parse: add it after looking it up in the
// specification, never to silence a typo.
type file struct {
	Name     string             `yaml:"name"`
	Services map[string]service `yaml:"services"`
	Volumes  map[string]*volume `yaml:"volumes"`

	// Ours: the anchors that services merge. Their contents are checked where
	// they are merged.
	ZooKeeper            yaml.Node `yaml:"x-zookeeper"`
	ZooKeeperEnvironment yaml.Node `yaml:"x-zookeeper-environment"`
	Flaked               yaml.Node `yaml:"x-flaked"`
}

type service struct {
	Image           string                `yaml:"image"`
	Build           *build                `yaml:"build"`
	Hostname        string                `yaml:"hostname"`
	Command         []string              `yaml:"command"`
	Environment     map[string]string     `yaml:"environment"`
	Ports           []string              `yaml:"ports"`
	Volumes         []string              `yaml:"volumes"`
	DependsOn       map[string]dependency `yaml:"depends_on"`
	Healthcheck     *healthcheck          `yaml:"healthcheck"`
	Restart         string                `yaml:"restart"`
	StopGracePeriod string                `yaml:"stop_grace_period"`
}

type build struct {
	Context string            `yaml:"context"`
	Args    map[string]string `yaml:"args"`
}

type dependency struct {
	Condition string `yaml:"condition"`
}

type healthcheck struct {
	Test        []string `yaml:"test"`
	Interval    string   `yaml:"interval"`
	Timeout     string   `yaml:"timeout"`
	Retries     int      `yaml:"retries"`
	StartPeriod string   `yaml:"start_period"`
}

// volume has no settings of ours: its defaults do.
type volume struct{}

func parse(data []byte) (*file, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var f file
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("docker-compose.yml: %w", err)
	}
	return &f, nil
}
