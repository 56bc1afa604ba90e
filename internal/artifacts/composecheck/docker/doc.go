// Package docker checks docker-compose.yml and the Dockerfile without a Docker engine. It
// reads the files by the libraries that Docker reads them by, and is a module of its own, so
// that flaked does not depend on these. Its tests also run the built program in an empty root
// directory. No check proves that the containers find each other. The test of composecheck
// runs the tests of this module.
package docker
