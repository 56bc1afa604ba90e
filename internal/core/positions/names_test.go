package positions

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/sequence"
)

// FuzzNames: a name, a template, a key and a pattern of rights agree with each other, and none of them can break out of
// a line of the protocol or a path in ZooKeeper.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"order", "5", "_a", "{app}:2026:1", "order:*", "a/*", "*", "none", "order,user/*",
		"a,*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, prefix := sequence.CheckName(text) == nil, sequence.CheckPrefix(text) == nil
		template := CheckPattern(text) == nil
		if name != (sequence.CheckName([]byte(text)) == nil) || name && !prefix ||
			template && (prefix || !IsPattern(text)) {
			t.Fatalf("%q: name %v, prefix %v, template %v", text, name, prefix, template)
		}
		evil := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("%*,=\"\\", r) }
		if (name || sequence.CheckKey(text) == nil) &&
			(len(text) > sequence.MaxName || strings.ContainsFunc(text, evil)) {
			t.Fatalf("%q is a name or a key", text)
		}
		if name {
			for _, of := range Patterns(text) {
				if CheckPattern(of) != nil || !strings.HasPrefix(text, strings.TrimSuffix(of, "*")) {
					t.Fatalf("%q belongs to %q", text, of)
				}
			}
		}
		rights, err := sequence.ParseRights(text)
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
