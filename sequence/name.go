package sequence

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxName is the greatest length of a name, in bytes.
const MaxName = 128

// CheckName returns an error if a sequence must not have this name. A name is a letter, a digit, _ or {, followed
// by letters, digits and _ . : - { } /, at most MaxName bytes. Digits alone are not a name, because
// requests have counts. CheckName allocates memory only for errors.
func CheckName[T string | []byte](name T) error {
	if err := CheckPrefix(name); err != nil {
		return err
	}
	for i := range len(name) {
		if !isDigit(name[i]) {
			return nil
		}
	}
	return fmt.Errorf("the name of a sequence must have more than digits: %s is a count", string(name))
}

// CheckPrefix returns an error if no valid name of a sequence begins with name.
func CheckPrefix[T string | []byte](name T) error {
	switch {
	case len(name) == 0:
		return fmt.Errorf("the name of a sequence is empty")
	case len(name) > MaxName:
		return fmt.Errorf("the name of a sequence has %d bytes, at most %d are allowed", len(name), MaxName)
	case !isLetter(name[0]) && !isDigit(name[0]) && name[0] != '_' && name[0] != '{':
		return fmt.Errorf("the name of a sequence must begin with a letter, a digit, _ or {, not %q", first(name, 0))
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && !isDigit(c) && !strings.ContainsRune("_.:-{}/", rune(c)) {
			const text = "the name of a sequence must not contain %q: use letters, digits and _ . : - { } /"
			return fmt.Errorf(text, first(name, i))
		}
	}
	return nil
}

// MaxKey is the greatest length of the key of a request, in bytes.
const MaxKey = 64

// CheckKey returns an error if a request must not have this key. A key is a letter, followed by
// letters, digits and _ . : -, at most MaxKey bytes.
func CheckKey(key string) error {
	good := len(key) > 0 && len(key) <= MaxKey && isLetter(key[0])
	for i := 0; good && i < len(key); i++ {
		c := key[i]
		good = isLetter(c) || isDigit(c) || strings.ContainsRune("_.:-", rune(c))
	}
	if !good {
		return fmt.Errorf("key %.80q must begin with a letter, go on with letters, digits and _ . : -, "+
			"and have %d bytes at most", key, MaxKey)
	}
	return nil
}

// first returns the character of name at an offset.
func first[T string | []byte](name T, at int) rune {
	r, _ := utf8.DecodeRuneInString(string(name[at:]))
	return r
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
