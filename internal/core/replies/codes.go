package replies

import (
	"slices"

	"github.com/flaked/flaked/ids"
)

// Class has the properties of a code that a node's ports and clients go by.
type Class struct {
	Code ids.Code
	// HTTP is the status of an HTTP reply. With 4xx the client must act. 503 passes by itself, or another node can
	// answer. 500 needs an operator.
	HTTP int
	// Passes: the refusal passes by itself, or another node can answer.
	Passes bool
	// Lasts: the node answers so until an operator acts. With EXHAUSTED that holds if it concerns no sequence.
	Lasts bool
}

// Codes are all codes. ids says what each means.
var Codes = [...]Class{
	{Code: ids.ERR, HTTP: 400},
	{Code: ids.NOAUTH, HTTP: 401, Lasts: true},
	{Code: ids.NOTREADY, HTTP: 503, Passes: true},
	{Code: ids.CLOCK, HTTP: 503, Passes: true},
	{Code: ids.FENCED, HTTP: 503, Passes: true},
	{Code: ids.EXHAUSTED, HTTP: 500, Lasts: true},
	{Code: ids.BUSY, HTTP: 429, Passes: true},
	{Code: ids.NOPERM, HTTP: 403},
	{Code: ids.WRONGPASS, HTTP: 401, Lasts: true},
	{Code: ids.WRONGNODE, HTTP: 503, Lasts: true},
	{Code: ids.NOPROTO, HTTP: 503},
	{Code: ids.EXECABORT, HTTP: 503},
}

// ClassOf returns the row of a code. That of an unknown code has HTTP 503 and nothing else.
func ClassOf(code ids.Code) Class {
	if i := Index(code); i >= 0 {
		return Codes[i]
	}
	return Class{Code: code, HTTP: 503}
}

// Index returns the index of a code in Codes, -1 for an unknown one.
func Index(code ids.Code) int {
	return slices.IndexFunc(Codes[:], func(c Class) bool { return c.Code == code })
}
