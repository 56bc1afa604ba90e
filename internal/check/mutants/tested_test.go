package mutants

// testedMutant is a mutant that tests of one package must catch. tests is a regular expression
// that selects them.
type testedMutant struct {
	mutant
	pkg, tests string
}

// ofTheCore lists mutants of operator commands, and mutants that random histories reveal too
// rarely.
var ofTheCore = []testedMutant{

	// Each mutant below drops one argument of a maximum that forms a floor or a bound.
}
