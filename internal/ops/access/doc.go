// Package access has the certificates and tokens of nodes and their clients. A node
// reads them from files that may be replaced while it runs. Errors and log lines never
// contain a token or a key.
package access
