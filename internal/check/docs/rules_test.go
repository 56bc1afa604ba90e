package docs

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// ruleNumber finds the numbers of rules in a comment: (C14), (S9, S11, O2).
var ruleNumber = regexp.MustCompile(`\(?\b[CSO][1-9][0-9]?\b(, [CSO][1-9][0-9]?\b)*( of docs/\w+\.md)?\)?`)

// checkRuleNames checks that the number of a rule never stands alone: the comment says in words what the rule is.
func checkRuleNames(t *testing.T, set *token.FileSet, file *ast.File) {
	t.Helper()
	for _, group := range file.Comments {
		text := group.Text() // without directives
		if !ruleNumber.MatchString(text) {
			continue
		}
		if words := strings.Fields(ruleNumber.ReplaceAllString(text, "")); len(words) < 4 {
			t.Errorf("%s: %q: say what the rule is, and give its number in parentheses", set.Position(group.Pos()),
				strings.TrimSpace(text))
		}
	}
}
