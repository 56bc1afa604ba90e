package access

import (
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

func TestParseTokens(t *testing.T) {
	for _, row := range []struct{ name, text, want, err string }{
		{"one", secret, secret, ""},
		{"several, with comments", "# old\r\n a1\r\n\r\n#new\nb2\n", "a1 b2", ""},
		{"longest", strings.Repeat("x", 256), strings.Repeat("x", 256), ""},
		{"too long", "ok\n" + strings.Repeat("x", 257), "", "F: line 2: a token must have at most 256 characters"},
		{"blank", "a b", "", "F: line 1: only next=... and admin=none may follow a token. Write one token per line"},
		{"blank in another script", "a\u00a0b", "", "F: line 1: a token must be printable ASCII without blanks"},
		{"not ASCII", "a\n\u00e9", "", "F: line 2: a token must be printable ASCII without blanks"},
		{"empty", "", "", "openssl rand -hex 32"},
	} {
		got, err := ParseTokens("F", []byte(row.text))
		if texts(got) != row.want || (err == nil) != (row.err == "") || err != nil &&
			!strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %q, %v", row.name, texts(got), err)
		}
	}
}

// texts returns tokens without their rights, separated by blanks.
func texts(tokens []Token) string {
	var list []string
	for _, t := range tokens {
		list = append(list, t.Text)
	}
	return strings.Join(list, " ")
}

// used returns those of some names that the rights of a token include.
func used(t Token) string {
	var list []string
	for _, name := range []string{"order", "order:", "order:1", "orders", "user", "user/x", "none", "next", "2026:1",
		"{app}:order"} {
		if t.Rights.MayUse([]byte(name)) {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

func TestParseRightsOfTokens(t *testing.T) {
	const all, line = "order order: order:1 orders user user/x none next 2026:1 {app}:order", "F: line 1: "
	for _, row := range []struct{ text, want, err string }{
		{"t", all, ""},
		{"t next=order", "order", ""},
		{"t next=order:*", "order: order:1", ""},
		{"t next=order*", "order order: order:1 orders", ""},
		{"t next=2026*,{app}:order", "2026:1 {app}:order", ""},
		{"t next=user,order:1,user,user/*", "order:1 user user/x", ""},
		{"t\t next=user \t admin=none\r", "user", ""},
		{"t admin=none", all, ""},
		{"t next=none", "", ""},
		{"t next=*", all, ""},
		{"next=user", "", line + "the token is missing. Write it before"},
		{"t next=", "", line + "next=: an entry is empty. Write next=NAME,PATTERN*,... or next=none"},
		{"t next=a,,b", "", line + "next=: an entry is empty"},
		{"t next=a b", "", line + "only next=... and admin=none may follow a token"},
		{"t next", "", line + "only next=... and admin=none may follow a token"},
		{"t next=none,a", "", line + "next=: none must stand alone"},
		{"t next=a*b", "", line + `next=: "a*b": the name of a sequence must not contain '*'`},
		{"t next=a,**", "", line + `next=: "**": the name of a sequence must begin with a letter, a digit, _ or ` +
			`{, not '*'`},
		{"t next=" + strings.Repeat("x", 129), "", "has 129 bytes, at most 128 are allowed"},
		{"t next=a next=b", "", line + "next= is given twice. Separate names by commas"},
		{"t admin=none admin=none", "", line + "admin= is given twice"},
		{"t admin=order:*", "", line + "admin= must be none: sequences are administered through ZooKeeper"},
		{"t next=\u00e9", "", line + "a token must be printable ASCII"},
		{"#\nt next=a\n\nt next=b", "", "F: line 4: line 2 has the same token with other rights. Keep one of them"},
		{"t\nt next=b", "", "F: line 2: line 1 has the same token with other rights"},
		{"t next=a\nt next=a*", "", "F: line 2: line 1 has the same token with other rights"},
		{"t next=user,user/*\nt next=user/*,user,user", "user user/x", ""},
	} {
		got, err := ParseTokens("F", []byte(row.text))
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%q: %v, want %q", row.text, err, row.err)
			}
			continue
		}
		if err != nil || used(got[0]) != row.want {
			t.Errorf("%q: %v, rights for %q, want %q", row.text, err, used(got[0]), row.want)
		}
	}
}

// FuzzParseTokens: the errors show no token, wherever it stands: a second one on a line must not get into the log.
// Tokens that are taken can be sent in a request, and are taken again.
func FuzzParseTokens(f *testing.F) {
	for _, text := range []string{" ", "t ", " =x", "t next=a ", " x=", "\n", " next=a,b:*", " next=", "#\n\r\n",
		" admin=none"} {
		f.Add([]byte(text), 0)
		f.Add([]byte(text), len(text))
	}
	f.Add([]byte("\n"+secret+" next=a"), 0)
	f.Add([]byte(" x="+secret), 0)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		at = min(max(at, 0), len(text))
		for at > 0 && text[at-1] > ' ' && text[at-1] != '\x7f' { // before a word, not within one, which no rule hides
			at--
		}
		text = slices.Insert(text, at, []byte(secret)...)
		got, err := ParseTokens("F", text)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, token := range got {
			if len(token.Text) > maxToken ||
				strings.ContainsFunc(token.Text, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Fatalf("%q: the token %q", text, token.Text)
			}
		}
		all := strings.ReplaceAll(texts(got), " ", "\n")
		if again, err := ParseTokens("F", []byte(all)); err != nil || texts(again) != texts(got) {
			t.Fatalf("%q became %q: %v", all, texts(again), err)
		}
	})
}

// Each token has its own rights, and a bad file leaves the old rights in use.
func TestRightsAreReloaded(t *testing.T) {
	dir, log := t.TempDir(), &logs{}
	write := func(text string) string { return certtest.Write(t, dir, "tokens", []byte(text)) }
	s, err := Load(Config{TokenFile: write("one next=order\ntwo next=none\nthree\n"), Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	check := s.Authenticate()
	wants := func(name, want string) {
		t.Helper()
		var got []string
		for _, token := range []string{"one", "two", "three", "four"} {
			if rights, ok := check([]byte(token)); ok && rights.MayUse([]byte(name)) {
				got = append(got, token)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is for %q, want %q", name, got, want)
		}
	}
	old, _ := check([]byte("one"))
	wants("order", "one three")
	wants("user", "three")
	write("one next=user\ntwo admin=all\n")
	s.refresh(false)
	wants("order", "one three")
	if log.count("tokens: line 2: admin= must be none") != 1 {
		t.Errorf("the log is %s", log)
	}
	write("one next=user\nfour next=order\n")
	s.refresh(false)
	wants("order", "four")
	wants("user", "one")
	if !old.MayUse([]byte("order")) || old.MayUse([]byte("user")) {
		t.Error("the rights of a connection have changed")
	}
}
