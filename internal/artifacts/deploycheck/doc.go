// Package deploycheck runs what flaked is deployed with: the image of the Dockerfile,
// docker-compose.yml, the Debian package under systemd, and the manifests for Kubernetes.
//
// The tests need podman, systemd in a container and root. `make containers` installs them and
// sets FLAKED_TEST_CONTAINERS. Without it the tests are skipped, and say so. The published
// base images cannot be fetched where these tests run. Images of the same names, which
// scripts/get-containers.sh makes of Debian, stand in for them.
package deploycheck
