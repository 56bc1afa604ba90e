package sequence

import (
	"slices"
	"strings"
	"testing"
)

func TestCheckTemplate(t *testing.T) {
	for name, ok := range map[string]bool{
		"order:*": true, "order:eu-*": true, "a/*": true, "a.*": true, "a_*": true,
		"_*": true, "2026:*": true, "{app}:*": true,
		"*": false, "order*": false, ":*": false, "order:*:*": false, "order:**": false, "order": false, "order:": false,
	} {
		if err := CheckTemplate(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// FuzzNames: a name, a template, a key and a pattern of rights agree with each other, and none of them can break out of
// a line of the protocol or a path in ZooKeeper.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"order", "5", "_a", "{app}:2026:1", "order:*", "a/*", "*", "none", "order,user/*",
		"a,*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, prefix, template := CheckName(text) == nil, CheckPrefix(text) == nil, CheckTemplate(text) == nil
		if name != (CheckName([]byte(text)) == nil) || name && !prefix || template && (prefix || !IsTemplate(text)) {
			t.Fatalf("%q: name %v, prefix %v, template %v", text, name, prefix, template)
		}
		evil := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("%*,=\"\\", r) }
		if (name || CheckKey(text) == nil) && (len(text) > MaxName || strings.ContainsFunc(text, evil)) {
			t.Fatalf("%q is a name or a key", text)
		}
		if name {
			for _, of := range Templates(text) {
				if CheckTemplate(of) != nil || !strings.HasPrefix(text, strings.TrimSuffix(of, "*")) {
					t.Fatalf("%q belongs to %q", text, of)
				}
			}
		}
		rights, err := ParseRights(text)
		if single := !strings.Contains(text, ",") && text != "none" && text != "*"; err == nil && single {
			pattern, ok := strings.CutSuffix(text, "*")
			if !rights.MayUse([]byte(pattern)) || rights.MayUse([]byte(pattern+"x")) != ok || rights.MayUse(nil) {
				t.Fatalf("%q gives %+v", text, rights)
			}
		}
		for entry := range strings.SplitSeq(text, ",") {
			if err == nil && text != "none" && !rights.MayUse([]byte(strings.TrimSuffix(entry, "*"))) {
				t.Fatalf("%q gives %+v, without %q", text, rights, entry)
			}
		}
	})
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
		if got := Templates(name); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
