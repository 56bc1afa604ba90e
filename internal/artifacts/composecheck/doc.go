// Package composecheck runs the checks of docker-compose.yml and the Dockerfile. They are in
// the module docker, which reads both files as Docker does.
package composecheck
