package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/sequence"
)

// maxToken is the length of the longest token. A request of the line protocol has room for
// it and a user name.
const maxToken = 256

// ShortToken is the length below which a token may be guessed.
const ShortToken = 16

// Token is a line of a token file.
type Token struct {
	Text string
	// Rights are the sequences that clients with this token may use.
	Rights *sequence.Rights
}

// ParseTokens returns the tokens in text, one per line, each with the rights that follow it. It
// skips empty lines and lines that begin with #. Errors begin with where, and show no token. Text
// without a token is an error.
func ParseTokens(where string, text []byte) ([]Token, error) {
	var tokens []Token
	type seen struct {
		line   int
		rights *sequence.Rights
	}
	before := map[string]seen{}
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		t, err := parseLine(string(line))
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", where, i+1, err)
		}
		if s, twice := before[t.Text]; twice && !s.rights.Equal(t.Rights) {
			return nil, fmt.Errorf("%s: line %d: line %d has the same token with other rights. Keep one of them",
				where, i+1, s.line)
		}
		before[t.Text] = seen{i + 1, t.Rights}
		tokens = append(tokens, t)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: no token found. Write one per line, for example from `openssl rand -hex 32`", where)
	}
	return tokens, nil
}

// parseLine parses a token and the words behind it. A word without = may be another token, so
// errors must not show it.
func parseLine(line string) (t Token, err error) {
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	t.Text = words[0]
	switch {
	case len(t.Text) > maxToken:
		return t, fmt.Errorf("a token must have at most %d characters", maxToken)
	case strings.HasPrefix(t.Text, "next=") || strings.HasPrefix(t.Text, "admin="):
		return t, errors.New("the token is missing. Write it before next= and admin=")
	case strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && r < ' ' || r > '~' }):
		return t, errors.New("a token must be printable ASCII without blanks. Write one token per line")
	}
	given := map[string]bool{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case !strings.HasPrefix(word, "next=") && !strings.HasPrefix(word, "admin="):
			return t, errors.New("only next=... and admin=none may follow a token. Write one token per line")
		case given[key]:
			return t, fmt.Errorf("%s= is given twice. Separate names by commas", key)
		case key == "admin" && value != "none":
			return t, errors.New("admin= must be none: sequences are administered through ZooKeeper and with its " +
				"credentials, not through a node")
		case key == "next":
			if t.Rights, err = sequence.ParseRights(value); err != nil {
				return t, fmt.Errorf("next=: %w", err)
			}
		}
		given[key] = true
	}
	return t, nil
}

// tokens holds the hashes of the valid tokens, and their rights.
type tokens struct {
	valid atomic.Pointer[[]validToken]
}

type validToken struct {
	sum    [sha256.Size]byte
	rights *sequence.Rights
}

func (t *tokens) set(good []Token) {
	valid := make([]validToken, len(good))
	for i, token := range good {
		valid[i] = validToken{sha256.Sum256([]byte(token.Text)), token.Rights}
	}
	t.valid.Store(&valid)
}

// good reports whether token is valid, and returns its rights. It takes the same time for all
// tokens of one length, so that the time reveals nothing: it compares hashes of equal length, and
// always all of them.
func (t *tokens) good(token []byte) (rights *sequence.Rights, ok bool) {
	sum, found, valid := sha256.Sum256(token), -1, *t.valid.Load()
	for i := range valid {
		same := subtle.ConstantTimeCompare(sum[:], valid[i].sum[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return nil, false
	}
	return valid[found].rights, true
}
