package positions

import (
	"fmt"
	"strings"

	"github.com/flaked/flaked/sequence"
)

// separators are the bytes before the * of a template's name.
const separators = "_.:-/"

var errTemplate = fmt.Errorf("the name of a template must end with one of %s and *, as in order:*",
	strings.Join(strings.Split(separators, ""), " "))

// IsPattern reports whether a name is meant as that of a template or a family.
func IsPattern(name string) bool { return strings.HasSuffix(name, "*") }

// CheckPattern returns an error if a template or a family must not have this name. It is the beginning of a
// sequence's name up to one of _ . : - /, followed by *, as in order:*.
func CheckPattern(name string) error {
	prefix, ok := strings.CutSuffix(name, "*")
	if !ok || prefix == "" {
		return errTemplate
	}
	if err := sequence.CheckPrefix(prefix); err != nil {
		return err
	}
	if !strings.ContainsRune(separators, rune(prefix[len(prefix)-1])) {
		return errTemplate
	}
	return nil
}

// Patterns returns the names of the templates and families that may match a sequence's name, the longest first.
func Patterns(name string) (all []string) {
	for k := len(name) - 1; k >= 0; k-- {
		if strings.IndexByte(separators, name[k]) >= 0 && k < len(name)-1 {
			all = append(all, name[:k+1]+"*")
		}
	}
	return all
}
