package positions

import (
	"slices"
	"testing"
)

func TestCheckTemplate(t *testing.T) {
	for name, ok := range map[string]bool{
		"order:*": true, "order:eu-*": true, "a/*": true, "a.*": true, "a_*": true,
		"_*": true, "2026:*": true, "{app}:*": true,
		"*": false, "order*": false, ":*": false, "order:*:*": false, "order:**": false, "order": false, "order:": false,
	} {
		if err := CheckPattern(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTemplates(t *testing.T) {
	for name, want := range map[string][]string{
		"order":           nil,
		"order:":          nil,
		"order:1":         {"order:*"},
		"_a":              {"_*"},
		"{app}:2026:1":    {"{app}:2026:*", "{app}:*"},
		"order:eu-2026.1": {"order:eu-2026.*", "order:eu-*", "order:*"},
	} {
		if got := Patterns(name); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
