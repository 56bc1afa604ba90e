// Package credentials is what a node and those who ask it show each other:
// certificates and tokens, from files that may be replaced while they are in
// use. No token and no key is ever part of an error or a line of the log.
package credentials
