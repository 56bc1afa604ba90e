package lineproto

import (
	"fmt"
	"strings"
)

// request returns an array as Redis clients send it.
func request(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// bulks returns an array of strings.
func bulks(values ...string) string { return request(values...) }

// crlf returns a plain error as RESP has it.
func crlf(line string) string { return strings.TrimSuffix(line, "\n") + "\r\n" }

var (
	getArray  = request("GET")
	bulk1000  = bulk("1000")
	crlfCount = crlf(badCount)
)

const (
	longArray    = "-ERR request longer than 65536 bytes\r\n"
	manyArgs     = "-ERR request of more than 1024 arguments\r\n"
	badMulti     = "-ERR Protocol error: invalid multibulk length\r\n"
	badBulk      = "-ERR Protocol error: invalid bulk length\r\n"
	respUsageGET = "-ERR usage: GET [key [COUNT n]]\r\n"
	badName      = "-ERR a client's name is at most 255 visible ASCII characters, without blanks\r\n"
	badHELLO     = "-ERR usage: HELLO [2 | 3 [AUTH user token] [SETNAME name]]\r\n"
	wrongDB      = "-ERR SELECT supports only database 0. Correct the client's database, and keep the counters of " +
		"several databases apart by names such as db2:order\r\n"
	badCLIENT = "-ERR CLIENT supports SETINFO, SETNAME, GETNAME, ID, INFO, LIST, " +
		"NO-EVICT, NO-TOUCH, REPLY ON, TRACKING ON OPTIN and TRACKING OFF\r\n"

	hello2 = "*14\r\n$6\r\nserver\r\n$6\r\nflaked\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:2\r\n$2\r\n" +
		"id\r\n:1\r\n" +
		"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
)

var hello3 = "%7" + strings.Replace(hello2[3:], ":2", ":3", 1)

// respTranscripts are transcripts in RESP.
var respTranscripts = []transcript{
	{"get", getArray, bulk1000, false},
	{"get twice", getArray + getArray, bulk1000 + bulk("1001"), false},
	{"case", request("get") + request("gEt", "1") + request("geT", "1", "cOUNt", "1") + request("pInG"),
		bulk1000 + bulk("1001") + bulks("1002") + "+PONG\r\n", false},
	{"key", request("GET", "order") + request("GET", "key:000000000001") + request("GET", x512[:64]),
		bulk1000 + bulk("1001") + bulk("1002"), false},
	{"runs", getArray + request("GET", "a") + getArray + request("GET", "a", "COUNT", "2") + getArray + request("PING"),
		bulk1000 + bulk("1001") + bulk("1002") + bulks("1003", "1004") + bulk("1005") + "+PONG\r\n", false},
	{"count", request("GET", "order", "COUNT", "3"), bulks("1000", "1001", "1002"), false},
	{"count one", request("GET", "order", "count", "1"), bulks("1000"), false},
	{"count of any key", request("GET", "", "COUNT", "1") + request("GET", "COUNT", "COUNT", "2") +
		request("GET", "5", "COUNT", "1"), bulks("1000") + bulks("1001", "1002") + bulks("1003"), false},
	{"mget", request("MGET", "a", "b", "c") + request("mget", "a"), bulks("1000", "1001", "1002") + bulks("1003"),
		false},
	{"mget of any keys", request("MGET", "5", "", "a b\r\n", "5", x512[:65]),
		bulks("1000", "1001", "1002", "1003", "1004"), false},
	// The requests that phpredis 5.3.7 sends for
	// $r->get(42), $r->ping(), $r->mGet([1, 2]) and $r->get('after').
	// Each must get one reply of the kind that phpredis waits for.
	{"keys that are numbers", "*2\r\n$3\r\nGET\r\n$2\r\n42\r\n*1\r\n$4\r\nPING\r\n*3\r\n$4\r\nMGET\r\n$1\r\n1\r\n" +
		"$1\r\n2\r\n*2\r\n$3\r\nGET\r\n$5\r\nafter\r\n",
		bulk1000 + "+PONG\r\n" + bulks("1001", "1002") + bulk("1003"), false},
	{"keys of all sorts", request("GET", "0") + request("GET", "007") + request("GET", "-1") + request("GET", "1.5") +
		request("GET", "10001") + request("GET", "") + request("GET", "a/b") + request("GET", "a b\r\n\x00\xff") +
		request("GET", x512) + request("GET", "/"),
		bulk1000 + bulk("1001") + bulk("1002") + bulk("1003") + bulk("1004") + bulk("1005") + bulk("1006") +
			bulk("1007") + bulk("1008") + bulk("1009"), false},
	{"decode", request("DECODE", "42") + request("DECODE", "13"),
		bulk("id=42 worker=7") + "-ERR the id is of no layout\r\n", false},
	{"time", request("TIME"), bulks("1700000000", "123"), false},
	{"worker", request("WORKER") + request("WORKER", "demo"), bulk(strings.TrimSpace(inDemo)) +
		bulk(strings.TrimSpace(inDemo)), false},
	{"worker of another cluster", request("WORKER", "prod") + getArray, strings.TrimSpace(notInProd) + "\r\n", true},
	{"worker of another cluster in multi", request("MULTI") + request("WORKER", "prod") + getArray + request("EXEC"),
		"+OK\r\n" + strings.Repeat("+QUEUED\r\n", 2) + "*2\r\n" + strings.TrimSpace(notInProd) + "\r\n", true},
	{"stats", request("STATS"), bulk("ids:1\r\nworker:7\r\n"), false},
	{"status", request("STATUS"), bulk(`{"ready":true,"peers":false}`), false},
	{"ready", request("READY"), "+OK\r\n", false},
	{"ping", request("PING") + request("PING", "a b\r\n\x00") + request("PING", ""),
		"+PONG\r\n" + bulk("a b\r\n\x00") + bulk(""), false},
	{"version", request("VERSION"), bulk("flaked 1.2.3"), false},
	{"quit", getArray + request("QUIT") + getArray, bulk1000 + "+OK\r\n", true},

	{"next", request("NEXT", "order") + request("next", "order") + "NEXT order\n" + request("NEXT", "order", "2") +
		request("NEXT", "order", "1"), bulk("1") + bulk("2") + "3\n" + bulks("4", "5") + bulks("6"), false},
	{"next pipelined", strings.Repeat(request("NEXT", "order"), 12) + request("PING"),
		bulk("1") + bulk("2") + bulk("3") + bulk("4") + bulk("5") + bulk("6") + bulk("7") + bulk("8") + bulk("9") +
			bulk("10") + bulk("11") + bulk("12") + "+PONG\r\n", false},
	{"range", request("RANGE", "order", "10") + request("PASS", "order", "1", "demo", "id", "7", "o"),
		bulks("1", "10") + bulks("11", "11", "o"),
		false},
	{"incr", request("INCR", "order") + request("INCR", "order") + request("INCRBY", "order", "10") +
		request("HELLO", "3") + request("INCR", "order"), ":1\r\n:2\r\n:12\r\n" + hello3 + ":13\r\n", false},
	{"steps", request("INCR", "by:10") + request("INCRBY", "by:10", "3") + request("RANGE", "by:10", "2") +
		request("NEXT", "by:10"), ":0\r\n:30\r\n" + bulks("40", "50") + bulk("60"), false},
	{"seq", request("INCR", "order") + request("SEQ", "order") + request("SEQS") + request("SEQS", "") +
		request("SEQS", "x"), ":1\r\n" + bulk("name=order taken=1") + bulks("name=order taken=1") +
		bulks("name=order taken=1") + "*0\r\n", false},
	{"sequence used up", strings.Repeat(request("INCR", "three"), 4) + request("INCRBY", "three", "2") +
		request("NEXT", "three", "2"), ":1\r\n:2\r\n:3\r\n" + strings.Repeat(crlf(usedUp), 3), false},
	{"sequence errors", request("INCR", "none") + request("INCR", "") + request("INCRBY", "a", "0") +
		request("INCRBY", "a", "-5") + request("NEXT", "a", "0") + request("INCR", "a", "1"),
		"-ERR reason=no-sequence there is no sequence none\r\n-ERR the name of a sequence is empty\r\n" +
			crlf(badRange) + crlf(badRange) + crlfCount + "-ERR usage: INCR name\r\n", false},
	{"get of a sequence's name", request("INCR", "order") + request("GET", "order") + request("MGET", "order") +
		request("INCR", "order"), ":1\r\n" + bulk1000 + bulks("1001") + ":2\r\n", false},
	{"long request for a sequence", request("INCR", x512+x512) + request("NEXT", "order", strings.Repeat("0", 600)) +
		request("INCR", "order"), "-ERR the name of a sequence has 1024 bytes, at most 128 are allowed\r\n" +
		crlfCount + ":1\r\n", false},
	{"writes of Redis", request("SET", "a", "5") + request("WATCH", "a") + getArray,
		"-ERR unknown command \"SET\", HELP lists them\r\n-ERR unknown command \"WATCH\", HELP lists them\r\n" +
			bulk1000, false},

	{"mixed", "GET\n" + getArray + "GET\r\nGET 2\n" + request("GET", "2") + "MGET a/b\n" + request("MGET", "a/b") +
		"PING\n" + request("PING") + "PING\r\n",
		"1000\n" + bulk("1001") + "1002\r\n1003\n1004\n" + bulk("1005") + badTag + bulks("1006") +
			"PONG\n+PONG\r\nPONG\r\n", false},
	{"empty lines between", "\r\n" + getArray + "\r\n\n" + getArray, bulk1000 + bulk("1001"), false},
	{"empty array", "*0\r\n" + getArray + "*0\r\n", bulk1000, false},
	{"telnet before", "\xff\xfb\x01" + getArray, bulk1000, false},
	{"telnet option 42", "\xff\xfb*GET\n\xff\xfb", "1000\n", false},
	{"telnet bytes within", request("PING", "\xff\xfb\x01"), bulk("\xff\xfb\x01"), false},
	{"blank before", " *1\n", "-ERR unknown command \"*1\", HELP lists them\n", false},
	{"unterminated", getArray + "*1\r\n$3\r\nGET\r", bulk1000, false},
	{"unterminated GET with a key", "*2\r\n$3\r\nGET\r\n", "", false},
	{"an array within a line", "PING " + "*1\r\n", "*1\r\n", false},

	{"errors in order", request("GET", "a", "COUNT", "0") + getArray + request("FOO", "x") + request("GET", "a") +
		request("GET", "a", "2") + request("PING", "1", "2"),
		crlfCount + bulk1000 + "-ERR unknown command \"FOO\", HELP lists them\r\n" + bulk("1001") + respUsageGET +
			"-ERR usage: PING [text]\r\n", false},
	{"bad counts", request("GET", "a", "COUNT", "") + request("GET", "a", "COUNT", "0") +
		request("GET", "a", "COUNT", "007") + request("GET", "a", "COUNT", "10001") +
		request("GET", "a", "COUNT", "-1") + request("GET", "a", "COUNT", "x"), strings.Repeat(crlfCount, 6), false},
	{"empty verb", request("") + request("", "GET"),
		strings.Repeat("-ERR unknown command \"\", HELP lists them\r\n", 2), false},
	{"blanks in a verb", request("GET ") + request(" GET") + request("GET 5"),
		"-ERR unknown command \"GET \", HELP lists them\r\n-ERR unknown command \" GET\", HELP lists them\r\n" +
			"-ERR unknown command \"GET 5\", HELP lists them\r\n", false},
	{"arity", request("GET", "1", "2") + request("GET", "a", "COUNT") + request("GET", "a", "LIMIT", "2") +
		request("GET", "a", "COUNT", "2", "x") + request("MGET") + request("TIME", "x"),
		strings.Repeat(respUsageGET, 4) + "-ERR usage: MGET key ...\r\n-ERR usage: TIME\r\n", false},
	{"http is no RESP", request("POST") + request("GET", "/"),
		"-ERR unknown command \"POST\", HELP lists them\r\n" + bulk1000, false},
	{"http after", getArray + "GET / HTTP/1.1\r\n\r\n", bulk1000 + http400, true},

	{"no count", "*\r\n", badMulti, true},
	{"count negative", "*-1\r\n" + getArray, badMulti, true},
	{"count signed", "*+1\r\n", badMulti, true},
	{"count with a zero before", "*01\r\n", badMulti, true},
	{"count no number", "*x\r\n", badMulti, true},
	{"count then blank", "*1 \r\n", badMulti, true},
	{"count without CR", "*1\n$4\nPING\n", badMulti, true},
	{"count with CR alone", "*1\rX", badMulti, true},
	{"count without end", "*111111111", badMulti, true},
	{"count too great", getArray + "*1025\r\n" + getArray, bulk1000 + manyArgs, true},
	{"count far too great", "*99999999\r\n", manyArgs, true},
	{"null bulk", "*1\r\n$-1\r\n", badBulk, true},
	{"bulk no number", "*1\r\n$a\r\n", badBulk, true},
	{"bulk with a zero before", "*1\r\n$04\r\nPING\r\n", badBulk, true},
	{"bulk without CR", "*1\r\n$4\nPING\r\n", badBulk, true},
	{"no bulk", "*2\r\n$3\r\nGET\r\n:5\r\n", "-ERR Protocol error: expected '$', got ':'\r\n", true},
	{"an array in an array", "*1\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'\r\n", true},
	{"inline within an array", "*2\r\n$3\r\nGET\r\nGET\r\n", "-ERR Protocol error: expected '$', got 'G'\r\n", true},
	{"garbage within an array", "*1\r\n\xff", "-ERR Protocol error: expected '$', got '\\u00ff'\r\n", true},
	{"bulk shorter than its header", "*2\r\n$4\r\nGET\r\n$1\r\na\r\n",
		"-ERR Protocol error: a string longer than announced\r\n", true},
	{"bulk longer than its header", "*1\r\n$2\r\nGET\r\n", "-ERR Protocol error: a string longer than announced\r\n",
		true},
	{"GET without its LF", "*1\r\n$3\r\nGET\r\r", "-ERR Protocol error: a string longer than announced\r\n", true},
	{"key with a zero before", "*2\r\n$3\r\nGET\r\n$01\r\na\r\n", badBulk, true},
	{"string too long", "*1\r\n$65525\r\n", longArray, true},
	{"string far too long", "*1\r\n$99999999\r\n", longArray, true},
	{"string absurdly long", "*1\r\n$999999999", badBulk, true},

	{"hello", request("HELLO"), hello2, false},
	{"hello 2", request("hello", "2"), hello2, false},
	{"hello 3 and back", request("HELLO", "3") + request("HELLO") + request("HELLO", "2") + request("HELLO"),
		hello3 + hello3 + hello2 + hello2, false},
	{"hello 3 changes no reply of ours", request("HELLO", "3") + request("GET") + request("GET", "a", "COUNT", "2") +
		request("TIME") + request("STATS") + "PING\n",
		hello3 + bulk1000 + bulks("1001", "1002") + bulks("1700000000", "123") + bulk("ids:1\r\nworker:7\r\n") +
			"PONG\n", false},
	{"hello with a name", request("HELLO", "3", "SETNAME", "me") + request("CLIENT", "GETNAME"), hello3 + bulk("me"),
		false},
	{"hello 4", request("HELLO", "4") + request("HELLO", "3x") + request("HELLO"),
		strings.Repeat("-NOPROTO unsupported protocol version: flaked speaks 2 and 3\r\n", 2) + hello2, false},
	{"hello refused changes nothing", request("HELLO", "3", "SETNAME") + request("HELLO", "3", "SETNAME", "a b") +
		request("HELLO", "3", "FOO") + request("HELLO"),
		badHELLO + badName + badHELLO + hello2, false},
	{"client", request("CLIENT", "SETINFO", "LIB-NAME", "x") + request("client", "setname", "n") +
		request("CLIENT", "ID") + request("CLIENT", "NO-EVICT", "on") + request("CLIENT", "REPLY", "ON"),
		"+OK\r\n+OK\r\n:1\r\n+OK\r\n+OK\r\n", false},
	{"client without a name", request("CLIENT", "GETNAME") + request("HELLO", "3") + request("CLIENT", "GETNAME"),
		"$-1\r\n" + hello3 + "_\r\n", false},
	{"client list", request("CLIENT", "SETNAME", "n") + request("CLIENT", "LIST"),
		"+OK\r\n" + bulk("id=1 name=n resp=2\r\n"), false},
	{"client refused", request("CLIENT", "TRACKING", "on") + request("CLIENT", "CACHING", "yes") +
		request("CLIENT", "REPLY", "OFF") + request("CLIENT", "REPLY", "SKIP") + request("CLIENT", "SETNAME"),
		strings.Repeat(badCLIENT, 5), false},
	{"client names", request("CLIENT", "SETNAME", "a\n") + request("CLIENT", "SETNAME", x512[:256]) +
		request("CLIENT", "SETNAME", x512[:255]), badName + badName + "+OK\r\n", false},
	{"command", request("COMMAND") + request("COMMAND", "DOCS") + request("COMMAND", "COUNT") +
		request("COMMAND", "INFO", "get", "x"), "*0\r\n*0\r\n:0\r\n*2\r\n*-1\r\n*-1\r\n", false},
	{"command 3", request("HELLO", "3") + request("COMMAND", "DOCS") + request("COMMAND", "GETKEYS", "GET", "a"),
		hello3 + "%0\r\n-ERR COMMAND supports COUNT, DOCS, INFO and LIST\r\n", false},
	{"config", request("CONFIG", "GET", "save") + request("CONFIG", "SET", "a", "b") + request("HELLO", "3") +
		request("CONFIG", "GET", "*"),
		"*0\r\n-ERR CONFIG supports only GET, which returns nothing\r\n" + hello3 + "%0\r\n", false},
	{"select", request("SELECT", "0") + request("SELECT", "1"), "+OK\r\n" + wrongDB, false},
	{"wrong database until another", request("SELECT", "2") + request("INCR", "a") + request("GET") +
		request("GET", "k") + "GET\nGET 5\n" + request("MULTI") + request("PING") + request("QUIT2") +
		request("SELECT", "0") +
		request("INCR", "a") + request("SELECT", "3") + request("RESET") + request("INCR", "a"),
		strings.Repeat(wrongDB, 4) + strings.Repeat(strings.ReplaceAll(wrongDB, "\r", ""), 2) +
			strings.Repeat(wrongDB, 2) +
			"-ERR unknown command \"QUIT2\", HELP lists them\r\n+OK\r\n:1\r\n" + wrongDB + "+RESET\r\n:2\r\n",
		false},
	{"echo", request("ECHO", "a\nb"), bulk("a\nb"), false},
	{"info of no section", request("INFO", "keyspace"), bulk(""), false},
	{"replication", request("INFO", "REPLICATION") + request("ROLE") + request("HELLO", "3") + request("ROLE"),
		bulk("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n") + "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n" + hello3 +
			"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", false},
	{"dbsize", request("DBSIZE"), ":0\r\n", false},
	{"unsubscribe", request("UNSUBSCRIBE") + request("UNSUBSCRIBE", "a", "b") + request("HELLO", "3") +
		request("UNSUBSCRIBE"),
		"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n*3\r\n$11\r\n" +
			"unsubscribe\r\n$1\r\nb\r\n:0\r\n" + hello3 + ">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n", false},
	{"reset", request("HELLO", "3", "SETNAME", "me") + request("RESET") + request("CLIENT", "GETNAME") + getArray,
		hello3 + "+RESET\r\n$-1\r\n" + bulk1000, false},
	{"tracking", request("CLIENT", "TRACKING", "ON", "OPTIN") + request("CLIENT", "TRACKING", "off") +
		request("CLIENT", "TRACKING", "ON") + request("CLIENT", "TRACKING", "ON", "OPTIN", "BCAST") +
		request("CLIENT", "TRACKING"),
		"+OK\r\n+OK\r\n" + strings.Repeat(badCLIENT, 3), false},
	{"inline of Redis clients", "SELECT 0\r\nAUTH \"any\"\r\nSELECT 1\r\nAUTH any\r\n",
		"+OK\r\n+OK\r\n" + wrongDB + "OK\r\n", false},

	{"multi", request("MULTI") + getArray + request("GET", "k", "COUNT", "2") + request("MGET", "a", "b") +
		request("PING") + getArray + request("EXEC") + getArray,
		"+OK\r\n" + strings.Repeat("+QUEUED\r\n", 5) + "*5\r\n" + bulk1000 + bulks("1001", "1002") +
			bulks("1003", "1004") + "+PONG\r\n" + bulk("1005") + bulk("1006"), false},
	{"multi of sequences", request("MULTI") + request("NEXT", "order") + request("NEXT", "order") +
		request("INCR", "order") + request("EXEC") + request("NEXT", "order"),
		"+OK\r\n" + strings.Repeat("+QUEUED\r\n", 3) + "*3\r\n" + bulk("1") + bulk("2") + ":3\r\n" + bulk("4"), false},
	{"multi of nothing", request("MULTI") + request("EXEC") + request("EXEC") + request("DISCARD"),
		"+OK\r\n*0\r\n" + strings.Repeat("-ERR EXEC and DISCARD need a MULTI before them\r\n", 2), false},
	{"multi discarded", request("MULTI") + getArray + request("DISCARD") + getArray,
		"+OK\r\n+QUEUED\r\n+OK\r\n" + bulk1000, false},
	{"multi refused", request("MULTI") + getArray + request("FOO") + getArray + request("EXEC") + getArray,
		"+OK\r\n+QUEUED\r\n-ERR unknown command \"FOO\", HELP lists them\r\n+QUEUED\r\n" +
			"-EXECABORT Transaction discarded because of previous errors.\r\n" + bulk1000, false},
	{"multi in multi", request("MULTI") + request("MULTI") + getArray + request("EXEC"),
		"+OK\r\n-ERR MULTI calls can not be nested\r\n+QUEUED\r\n*1\r\n" + bulk1000, false},
	{"multi with an error at its turn", request("MULTI") + request("GET", "k", "COUNT", "0") + getArray +
		request("EXEC"), "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + crlfCount + bulk1000, false},
	{"multi changes no framing", request("MULTI") + request("HELLO", "3") + request("EXEC"),
		"+OK\r\n-ERR this command is not allowed between MULTI and EXEC\r\n" +
			"-EXECABORT Transaction discarded because of previous errors.\r\n", false},
	{"multi and reset", request("MULTI") + getArray + request("RESET") + getArray,
		"+OK\r\n+QUEUED\r\n+RESET\r\n" + bulk1000, false},
	{"multi and quit", request("MULTI") + getArray + request("QUIT"), "+OK\r\n+QUEUED\r\n+OK\r\n", true},
	{"multi and plain lines", request("MULTI") + getArray + "GET\n" + request("EXEC"),
		"+OK\r\n+QUEUED\r\n1000\n*1\r\n" + bulk("1001"), false},
	{"set-up is RESP's alone", "HELLO\nCLIENT ID\nINFO\n",
		"-ERR unknown command \"HELLO\", HELP lists them\n-ERR unknown command \"CLIENT\", HELP lists them\n" +
			"-ERR unknown command \"INFO\", HELP lists them\n", false},
}
