package timeguard

import "testing"

func FuzzParseRollbackPolicy(f *testing.F) {
	for _, s := range []string{"leaf", "refuse", "wait", "wait=500ms", "coast=4s", "coast=1µs", "leaf=1s",
		"rollback-bits"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseRollbackPolicy(text)
		if err != nil {
			return
		}
		if again, err := ParseRollbackPolicy(p.String()); err != nil || again != p {
			t.Errorf("%q is %s, read back as %s, %v", text, p, again, err)
		}
	})
}
