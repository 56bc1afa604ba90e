// Package dialog is the client's side of the line protocol: a Client connects to an address, a Cluster compares which
// cluster answers there, and a Reader reads the replies. Programs, commands, the load generator, and nodes that ask
// nodes use it. An error of a node has one form, *ids.ReplyError, and bytes that are not a reply are an ErrReply.
package dialog
