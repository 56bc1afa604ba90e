// Package kubecheck checks deploy/kubernetes without a cluster. Its tests report references
// to names that do not exist, and settings that do not fit how flaked behaves. They also run
// flaked as the containers would run it: with their arguments, volumes and users, and against
// their probes. The module apiserver checks the same files with the API server's own code.
package kubecheck
