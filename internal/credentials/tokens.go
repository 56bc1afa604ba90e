package credentials

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	"go.uber.org/atomic"
)

// maxToken is the longest token: with a user before it, it still fits a
// request of the line protocol.
const maxToken = 256

// ShortToken is the length below which a token may be guessed.
const ShortToken = 16

// ParseTokens reads tokens, one a line. Empty lines and those that begin with
// # are left out. where is for errors, which do not show what is there.
func ParseTokens(where string, text []byte) ([]string, error) {
	var tokens []string
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
			continue
		case len(line) > maxToken:
			return nil, fmt.Errorf("%s: line %d: a token has at most %d characters", where, i+1, maxToken)
		case bytes.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r > '~' }):
			return nil, fmt.Errorf("%s: line %d: a token is letters, digits and signs of ASCII, without blanks; one a line", where, i+1)
		}
		tokens = append(tokens, string(line))
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: there is no token in it: put one on a line, as `openssl rand -hex 32` makes them", where)
	}
	return tokens, nil
}

// tokens are those that are good now.
type tokens struct {
	sums atomic.Pointer[[][sha256.Size]byte]
}

func (t *tokens) set(good []string) {
	sums := make([][sha256.Size]byte, len(good))
	for i, token := range good {
		sums[i] = sha256.Sum256([]byte(token))
	}
	t.sums.Store(&sums)
}

// good takes the same time for all tokens of a length: sums are compared, as
// to compare the tokens would tell their length, and all of them are.
func (t *tokens) good(token []byte) bool {
	sum, found := sha256.Sum256(token), 0
	for _, want := range *t.sums.Load() {
		found |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	return found == 1
}
