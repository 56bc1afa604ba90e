package docs

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// ruleNumber finds the numbers of rules in a comment: (C14), (S9, S11, O2).
var ruleNumber = regexp.MustCompile(`\(?\b[CSO][1-9][0-9]?\b(, [CSO][1-9][0-9]?\b)*( of docs/\w+\.md)?\)?`)

var (
	number = regexp.MustCompile(`\b[CSO][1-9][0-9]?\b`)
	// A rule of docs/design.md begins with its number and its name: - **C3 The lease bound only rises.**
	ruleOfDesign = regexp.MustCompile(`(?m)^- \*\*([CSO][1-9][0-9]?) [A-Z]`)
	ruleOfModel  = regexp.MustCompile(`(?m)^#define ([CSO][1-9][0-9]?) `)
)

// rulesOfDesign returns how often docs/design.md has each rule.
var rulesOfDesign = sync.OnceValue(func() map[string]int {
	text, err := os.ReadFile("../../../docs/design.md")
	if err != nil {
		panic(err)
	}
	rules := make(map[string]int)
	for _, m := range ruleOfDesign.FindAllSubmatch(text, -1) {
		rules[string(m[1])]++
	}
	return rules
})

// docs/design.md has each rule once, with a name, and all rules of the models.
func TestRulesOfDesign(t *testing.T) {
	rules := rulesOfDesign()
	for rule, n := range rules {
		if n != 1 {
			t.Errorf("docs/design.md has rule %s %d times", rule, n)
		}
	}
	if len(rules) < 70 {
		t.Errorf("docs/design.md has %d rules", len(rules))
	}
	models, err := filepath.Glob("../../../docs/spec/*.pml")
	if err != nil || len(models) == 0 {
		t.Fatalf("%d models: %v", len(models), err)
	}
	for _, model := range models {
		text, err := os.ReadFile(model)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ruleOfModel.FindAllSubmatch(text, -1) {
			if rules[string(m[1])] == 0 {
				t.Errorf("%s: docs/design.md has no rule %s", model, m[1])
			}
		}
	}
}

// checkRuleNames checks that the number of a rule never stands alone: the comment says in words what the rule is. And
// docs/design.md must have the rule.
func checkRuleNames(t *testing.T, set *token.FileSet, file *ast.File) {
	t.Helper()
	for _, group := range file.Comments {
		text := group.Text() // without directives
		if !ruleNumber.MatchString(text) {
			continue
		}
		for _, number := range number.FindAllString(strings.Join(ruleNumber.FindAllString(text, -1), " "), -1) {
			if rulesOfDesign()[number] == 0 {
				t.Errorf("%s: docs/design.md has no rule %s", set.Position(group.Pos()), number)
			}
		}
		if words := strings.Fields(ruleNumber.ReplaceAllString(text, "")); len(words) < 4 {
			t.Errorf("%s: %q: say what the rule is, and give its number in parentheses", set.Position(group.Pos()),
				strings.TrimSpace(text))
		}
	}
}
