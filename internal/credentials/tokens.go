package credentials

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	"go.uber.org/atomic"
)

// maxToken is the length of the longest token. A request of the line protocol has room for
// it and a user name.
const maxToken = 256

// ShortToken is the length below which a token may be guessed.
const ShortToken = 16

// ParseTokens returns the tokens in text, one per line. It skips empty lines and lines that
// begin with #. Errors begin with where, and do not show the text. Text without a token is an
// error.
func ParseTokens(where string, text []byte) ([]string, error) {
	var tokens []string
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
			continue
		case len(line) > maxToken:
			return nil, fmt.Errorf("%s: line %d: a token must have at most %d characters", where, i+1, maxToken)
		case bytes.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r > '~' }):
			return nil, fmt.Errorf("%s: line %d: a token must be printable ASCII without blanks. Write one token per line", where, i+1)
		}
		tokens = append(tokens, string(line))
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: no token found. Write one per line, for example from `openssl rand -hex 32`", where)
	}
	return tokens, nil
}

// tokens holds the hashes of the valid tokens.
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

// good reports whether token is valid. It takes the same time for all tokens of one length,
// so that the time reveals nothing: it compares hashes of equal length, and always all of
// them.
func (t *tokens) good(token []byte) bool {
	sum, found := sha256.Sum256(token), 0
	for _, want := range *t.sums.Load() {
		found |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	return found == 1
}
