// Package access has the certificates and tokens of a node. It reads them from files that may be replaced while it
// runs. Errors and log lines never contain a token or a key.
package access
