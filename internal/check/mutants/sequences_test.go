package mutants

// testedOfSequences lists mutants of other packages that concern named sequences.
var testedOfSequences = []testedMutant{
	{mutant{"a peer's word of an earlier incarnation counts", []change{{"coordinator/word.go",
		"peer.Compared == incarnation+1", "peer.Compared > 0"}}}, "./coordinator", "TestWord"},
	{mutant{"a heartbeat that fails reports no loss", []change{{"coordinator/heartbeat.go",
		"restored = restored || finding == FoundLost", "_ = restored"}}}, "./coordinator", "TestLossIsReportedAlthoughTheHeartbeatFails"},
	{mutant{"INCRBY answers the first", []change{{"lineproto/sequences.go",
		"worker.Run{First: last, Len: 1}", "worker.Run{First: runs[0].First, Len: 1}"}}}, "./lineproto", "TestTranscripts$"},
	{mutant{"INCRBY takes values with gaps", []change{{"lineproto/sequences.go",
		"q.kind == seqRange || q.kind == seqIncrBy", "q.kind == seqRange"}}}, "./lineproto", "TestTranscripts$|TestWrongValuesAreAnError|TestSequencesThatPendAtRandom"},
	{mutant{"RANGE takes values with gaps", []change{{"lineproto/sequences.go",
		"q.kind == seqRange || q.kind == seqIncrBy", "q.kind == seqIncrBy"}}}, "./lineproto", "TestTranscripts$|TestWrongValuesAreAnError|TestSequencesThatPendAtRandom"},
}
