package lineproto

import (
	"slices"

	"github.com/flaked/flaked/ids"
)

// redisWrites are commands of Redis that change a value, or watch one. Some
// clients of INCR also send them.
var redisWrites = []string{
	"SET", "SETNX", "SETEX", "PSETEX", "MSET", "MSETNX", "GETSET", "GETDEL", "GETEX", "APPEND", "SETRANGE",
	"DECR", "DECRBY", "INCRBYFLOAT", "HINCRBY", "DEL", "UNLINK", "RENAME", "RENAMENX",
	"EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "PERSIST",
	"WATCH", "UNWATCH", "EVAL", "EVALSHA", "SCRIPT",
}

// errRedisWrite is the reply to them.
var errRedisWrite = ids.Reply(ids.ERR, "not supported: flaked stores no values. "+
	"Take values of a sequence with NEXT or INCR. An operator creates and changes sequences")

func isRedisWrite(verb []byte) bool {
	return slices.ContainsFunc(redisWrites, func(name string) bool { return equalFold(verb, name) })
}
