package mutants

// testedOfSequences lists mutants of other packages that concern named sequences.
var testedOfSequences = []testedMutant{
}
