package admin

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// docs/admin.md has every field of the status document.
func TestEveryFieldIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/admin.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, ok := strings.Cut(string(text), "\n## /v1/status\n")
	if !ok {
		t.Fatal("docs/admin.md has no /v1/status")
	}
	seen := make(map[reflect.Type]bool)
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name == "" {
				t.Errorf("%s.%s has no name in JSON", typ, f.Name)
			}
			// The name stands alone, behind a dot, or in front of one.
			if !regexp.MustCompile("[`.]" + name + "[`.]").MatchString(doc) {
				t.Errorf("docs/admin.md says nothing of %s (%s.%s)", name, typ, f.Name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Status]())
}
