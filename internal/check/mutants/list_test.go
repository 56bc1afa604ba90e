package mutants

// mutant describes the code with one safeguard removed. If several places of the code form one
// safeguard, the mutant removes all of them.
type mutant struct {
	name    string
	changes []change
}

// change replaces old by new. old must occur in the file exactly once.
type change struct{ file, old, new string }

// mutants are roughly in the order of the rules in docs/safety.md.
var mutants = []mutant{
	// The reserved bound, M.

	// The lease bound, H.

	// Changing hands.

	// Ticks.
	// A tenure issues ticks below FloorTick(b), where b is the lesser of the reserved bound
	// and the lease bound. The next holder's floor lo is at least b. Rounding only one of
	// the two the wrong way leads to no duplicate ID, so the list has no mutant for it:
	//   - Floors rounded down: FloorTick(lo) >= FloorTick(b), above all issued ticks.
	//   - Bounds rounded up: the issued ticks are below CeilTick(b) <= CeilTick(lo).
	// With both, the two holders overlap in the tick of b. (The simulation's checks of
	// single ticks find either one.)

	// A ZooKeeper that has lost data.

	// One event for a loss: incarnation, freeze, horizon, and who need not wait.

	// Rollback policies other than Leaf's. worlds names the world that reveals each mutant.
}

// worlds names the world of the simulation that catches a mutant, by the mutant's name. The
// other mutants are caught in the plain world.
var worlds = map[string]string{
	"a holder that ZooKeeper lost has not borrowed": "borrow",
}
