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
	{"a resume begins at now", []change{{"coordinator/resume.go",
		"h.Floor = max(h.Floor, h.ReservedUntil)", "h.Floor = h.co.Now()"}}},
	{"an old copy of a state file is resumed", []change{{"coordinator/decide.go",
		"case found.Generation > mine.Generation:", "case false:"}}},

	// The lease bound, H.
	{"the lease bound goes down with the clock", []change{{"coordinator/holding.go",
		"s.LeaseUntil = max(s.LeaseUntil, min(e.now+lease.Milliseconds(), e.horizon.usable))", "s.LeaseUntil = min(e.now+lease.Milliseconds(), e.horizon.usable)"}}},
	{"a resume's lease bound counts before it is acknowledged", []change{{"coordinator/resume.go",
		"	slot, err := h.nextGrant(cl, *v.slot, lease, goesOn)", "	h.LeaseUntil, h.Confirmed = max(v.slot.LeaseUntil, h.LeaseUntil, c.Now()+lease.Milliseconds()), true\n	slot, err := h.nextGrant(cl, *v.slot, lease, goesOn)"}}},
	{"a heartbeat's lease bound counts before it is acknowledged", []change{{"coordinator/heartbeat.go",
		"	h.holding = d.holding\n",
		"	h.holding = d.holding\n	if h.Confirmed {\n		h.LeaseUntil = d.slot.LeaseUntil\n	}\n"}}},
	{"a lease that had expired goes on", []change{
		{"coordinator/holding.go", "d.lapsed = e.now >= found.LeaseUntil", "d.lapsed = false"},
		{"coordinator/doubt.go", "return stamp+ahead >= h", "return false"}}},

	// Changing hands.
	{"a take-over begins at now, whatever the lease bound was", []change{{"coordinator/register.go",
		"floor := max(now, old.LeaseUntil)", "floor := now"}}},
	{"a take-over does not wait for the lease bound, and begins at now", []change{
		{"coordinator/register.go", "floor := max(now, old.LeaseUntil)", "floor := now"},
		{"coordinator/decide.go", "	case !s.givenUp() && s.LeaseUntil+c.graceMs() <= now:\n		return Free\n", "	case !s.givenUp() && !s.Stopped:\n		return Free\n"}}},
	{"a take-over lowers the lease bound", []change{{"coordinator/register.go",
		"h.nextGrant(cl, old, lease, false)", "h.nextGrant(cl, Slot{}, lease, false)"}}},
	{"a take is written whatever the version", []change{{"coordinator/register.go",
		"store.SetOp{Path: slotPath(worker), Data: slot.marshal(), Version: v.stat.Version})", "store.SetOp{Path: slotPath(worker), Data: slot.marshal(), Version: store.AnyVersion})"}}},
	{"a heartbeat or a resume is written whatever the version", []change{{"coordinator/heartbeat.go",
		"Data: d.slot.marshal(), Version: v.stat.Version}", "Data: d.slot.marshal(), Version: store.AnyVersion}"}}},
	{"a release is written whatever the version", []change{{"coordinator/stop.go",
		"c.Store.Set(ctx, slotPath(h.Worker), slot.marshal(), v.stat.Version)", "c.Store.Set(ctx, slotPath(h.Worker), slot.marshal(), store.AnyVersion)"}}},
	{"a record is ours by its node, not its nonce", []change{{"coordinator/decide.go",
		"return s.Nonce != \"\" && s.Node == c.Node && (s.Nonce == c.Nonce || s.Nonce == c.PendingNonce)", "return s.Nonce != \"\" && s.Node == c.Node"}}},
	{"a higher term does not fence", []change{
		{"coordinator/decide.go", "	case found.Term > mine.Term:\n		return FoundFenced\n", ""},
		{"coordinator/doubt.go", "return stamp+ahead >= h", "return false"}}},

	// Ticks.
	// A tenure issues ticks below FloorTick(b), where b is the lesser of the reserved bound
	// and the lease bound. The next holder's floor lo is at least b. Rounding only one of
	// the two the wrong way leads to no duplicate ID, so the list has no mutant for it:
	//   - Floors rounded down: FloorTick(lo) >= FloorTick(b), above all issued ticks.
	//   - Bounds rounded up: the issued ticks are below CeilTick(b) <= CeilTick(lo).
	// With both, the two holders overlap in the tick of b. (The simulation's checks of
	// single ticks find either one.)

	// A ZooKeeper that has lost data.
	{"no confirming", []change{{"coordinator/confirm.go",
		"	if cl.ConfirmMs == 0 {", "	if true {"}}},
	{"a restart does not confirm again", []change{{"coordinator/resume.go",
		"if !goesOn || !before.goesOn(v, e) {", "if _ = before; false {"}}},
	{"a record that shows a loss only fences", []change{{"coordinator/decide.go",
		"	case !c.Confirmed || found.Term < 1 ||", "	case true || !c.Confirmed || found.Term < 1 ||"}}},
	{"records that others have confirmed are overwritten", []change{{"coordinator/decide.go",
		"	case found.Term == mine.Term && found.Confirmed:\n		return FoundFenced\n", ""}}},
	{"a lost record counts as free", []change{{"coordinator/lost.go",
		"Slot{LeaseUntil: h, Lost: true}.marshal()", "freeSlot().marshal()"}}},
	{"lost records are kept for a second", []change{{"coordinator/lost.go",
		"return max(c.Horizon, c.lastLease(now))", "return now + 1000"}}},
	{"no freeze after a loss of data", []change{{"coordinator/record.go",
		"bool { return now < c.FrozenUntil }", "bool { return false }"}}},
	{"a record of a later incarnation is overwritten", []change{{"coordinator/decide.go",
		"	case found.Incarnation > mine.Incarnation && found.Confirmed:\n		return FoundFenced\n	case found.Incarnation != mine.Incarnation:\n		return FoundLost\n", ""}}},

	// One event for a loss: incarnation, freeze, horizon, and who need not wait.
	{"a loss raises no incarnation", []change{{"coordinator/loss.go",
		"leased, l.Known+1", "leased, l.Known"}}},
	{"a loss freezes nothing", []change{
		{"coordinator/loss.go", "max(found.FrozenUntil, next.Horizon), \"\"\n	if raised", "found.FrozenUntil, \"\"\n	if raised"},
		{"coordinator/loss.go", "stamp == 0 || cl.FrozenUntil >= mine.lastLease(stamp)", "true"},
		{"coordinator/loss.go", "next.FrozenUntil, next.FrozenBy = next.Horizon, \"\"", "next.FrozenUntil, next.FrozenBy = 0, \"\""}}},
	{"a peer vouches without a chain", []change{{"coordinator/word.go",
		"peer.UnbrokenMs >= confirmTime(cl).Milliseconds()", "true"}}},
	{"a peer vouches with a young chain", []change{{"coordinator/word.go",
		"peer.UnbrokenMs >= confirmTime(cl).Milliseconds()", "peer.UnbrokenMs >= confirmTime(cl).Milliseconds()/2"}}},
	{"a chain has no gaps", []change{{"coordinator/chain.go",
		" && now >= ch.Sent && now-ch.Sent <= gap(heartbeat)", ""}}},

	// Rollback policies other than Leaf's. worlds names the world that reveals each mutant.
	{"a holder that ZooKeeper lost has not borrowed", []change{
		{"coordinator/confirm.go", "cl.ConfirmMs+cl.BorrowMs", "cl.ConfirmMs"},
		{"coordinator/holding.go", "e.now+cl.BorrowMs", "e.now"},
		{"coordinator/doubt.go", " + e.mine.BorrowMs", ""}}},
}

// worlds names the world of the simulation that catches a mutant, by the mutant's name. The
// other mutants are caught in the plain world.
var worlds = map[string]string{
	"a holder that ZooKeeper lost has not borrowed": "borrow",
}
