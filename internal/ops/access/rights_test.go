package access

import (
	"slices"
	"strings"
	"testing"
)

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

func TestParseTokens(t *testing.T) {
	const all, line = "order order: order:1 orders user user/x none next 2026:1 {app}:order", "F: line 1: "
	longest := strings.Repeat("x", 256)
	for _, row := range []struct{ text, tokens, first, err string }{ // the tokens, and what the first one may use
		{secret, secret, all, ""},
		{"# old\r\n a1\r\n\r\n#new\nb2\n", "a1 b2", all, ""},
		{longest, longest, all, ""},
		{"t next=order:*", "t", "order: order:1", ""},
		{"t next=2026*,{app}:order", "t", "2026:1 {app}:order", ""},
		{"t\t next=user \t admin=none\r", "t", "user", ""},
		{"t admin=none", "t", all, ""},
		{"t next=none", "t", "", ""},
		{"t next=*", "t", all, ""},
		{"t next=user,user/*\nt next=user/*,user,user", "t t", "user user/x", ""},
		{"", "", "", "openssl rand -hex 32"},
		{"ok\n" + longest + "x", "", "", "F: line 2: a token must have at most 256 characters"},
		{"a b", "", "", line + "only next=... and admin=none may follow a token. Write one token per line"},
		{"a\u00a0b", "", "", line + "a token must be printable ASCII without blanks"},
		{"t next=\u00e9", "", "", line + "a token must be printable ASCII"},
		{"next=user", "", "", line + "the token is missing. Write it before"},
		{"admin=none", "", "", line + "the token is missing. Write it before"},
		{"t next=", "", "", line + "next=: an entry is empty. Write next=NAME,PATTERN*,... or next=none"},
		{"t next=a b", "", "", line + "only next=... and admin=none may follow a token"},
		{"t next", "", "", line + "only next=... and admin=none may follow a token"},
		{"t next=none,a", "", "", line + "next=: none must stand alone"},
		{"t next=a*b", "", "", line + `next=: "a*b": the name of a sequence must not contain '*'`},
		{"t next=a,**", "", "", line + `next=: "**": the name of a sequence must begin with a letter, a digit, _ or ` +
			`{, not '*'`},
		{"t next=a next=b", "", "", line + "next= is given twice. Separate names by commas"},
		{"t admin=none admin=none", "", "", line + "admin= is given twice"},
		{"t admin=order:*", "", "", line + "admin= must be none: sequences are administered through ZooKeeper"},
		{"#\nt next=a\n\nt next=b", "", "", "F: line 4: line 2 has the same token with other rights. Keep one of them"},
		{"t\nt next=b", "", "", "F: line 2: line 1 has the same token with other rights"},
	} {
		got, err := ParseTokens("F", []byte(row.text))
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%q: %v, want %q", row.text, err, row.err)
			}
			continue
		}
		if err != nil || texts(got) != row.tokens || used(got[0]) != row.first {
			t.Errorf("%q: %v, tokens %q, for %q, want %q", row.text, err, texts(got), used(got[0]), row.first)
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
