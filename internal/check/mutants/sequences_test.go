package mutants

// testedOfSequences lists mutants of other packages that concern named sequences.
var testedOfSequences = []testedMutant{
	{mutant{"a peer's word of an earlier incarnation counts", []change{{"coordinator/word.go",
		"peer.Compared == incarnation+1", "peer.Compared > 0"}}}, "./coordinator", "TestWord"},
	{mutant{"a heartbeat that fails reports no loss", []change{{"coordinator/heartbeat.go",
		"restored = restored || finding == FoundLost", "_ = restored"}}}, "./coordinator", "TestLossIsReportedAlthoughTheHeartbeatFails"},
}
