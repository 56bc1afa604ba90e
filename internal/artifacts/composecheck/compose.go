// Package composecheck checks docker-compose.yml and the Dockerfile without a Docker
// engine. Check parses docker-compose.yml, refuses keys that it does not know, and finds
// references to names that do not exist. The module dockerfile checks the Dockerfile as
// BuildKit's parser reads it, and runs the built program in an empty root directory. No check
// proves that the containers find each other.
package composecheck

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// file is the part of the Compose Specification that docker-compose.yml uses. A file with
// any other key fails to parse. Look a key up in the specification before you add it here.
type file struct {
	Name     string             `yaml:"name"`
	Services map[string]service `yaml:"services"`
	Volumes  map[string]*volume `yaml:"volumes"`

	// Extensions with the anchors that services merge. Check looks at their contents in
	// the services.
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

// volume has no fields, because every volume has the default settings.
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
