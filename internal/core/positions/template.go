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

// IsTemplate reports whether a name is meant as that of a template.
func IsTemplate(name string) bool { return strings.HasSuffix(name, "*") }

// CheckTemplate returns an error if a template must not have this name. It is the beginning of a
// sequence's name up to one of _ . : - /, followed by *, as in order:*.
func CheckTemplate(name string) error {
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

// Templates returns the names of the templates that match a sequence's name, the longest first.
func Templates(name string) (all []string) {
	for k := len(name) - 1; k >= 0; k-- {
		if strings.IndexByte(separators, name[k]) >= 0 && k < len(name)-1 {
			all = append(all, name[:k+1]+"*")
		}
	}
	return all
}
