// Package kubecheck checks deploy/kubernetes without a cluster. Its tests report references
// to names that do not exist, and settings that do not fit how flaked behaves. They also run
// flaked as the containers would run it: with their arguments, volumes and users, and against
// their probes. The module apiserver checks the same files with the API server's own code.
//
// Package deploycheck runs the same files as pods, by podman. podman 4.3.1 cannot run their probes,
// groups of volumes and sidecars, so the checks of these stay here. docs/deploy.md lists every
// field that is changed for podman or not exercised.
package kubecheck
