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
	{"no reserved bound: issuing up to the lease bound", []change{{"internal/core/node/reserve.go",
		"min(n.reservedUntil, n.claim.LeaseUntil)", "n.claim.LeaseUntil"}}},
	{"the reserved bound goes down with the clock", []change{{"timeguard/bounds.go",
		"return max(reserved, min(now+window.Milliseconds(), lease))", "return min(now+window.Milliseconds(), lease)"}}},
	{"the reserved bound counts before it is durable", []change{{"internal/core/node/reserve.go",
		"	n.mu.Unlock()\n\n	gen, err := n.save(rec)\n",
		"	n.reservedUntil = rec.Claim.ReservedUntil\n	n.applyBounds()\n	n.mu.Unlock()\n\n	gen, err := n.save(rec)\n"}}},
	{"a resume begins at now", []change{{"coordinator/resume.go",
		"h.Floor = max(h.Floor, h.ReservedUntil)", "h.Floor = h.co.Now()"}}},
	{"a start from the cache begins at now", []change{{"internal/core/node/acquire.go",
		"n.hold.GoAlone(s.reservedUntil, s.generation)", "n.hold.GoAlone(min(s.reservedUntil, n.now()), s.generation)"}}},
	{"a record found alone is taken as it is", []change{{"localcache/load.go",
		"		l.Record.ReservedUntil = raise(l.Record.ReservedUntil)\n", ""}}},
	{"an old copy of a state file is resumed", []change{{"coordinator/decide.go",
		"case found.Generation > mine.Generation:", "case false:"}}},
	{"no fingerprint", []change{{"internal/core/node/acquire.go",
		"case len(loaded.Changed) > 0:", "case false:"}}},

	// The lease bound, H.
	{"no lease bound: issuing up to the reserved bound", []change{
		{"internal/core/node/reserve.go", "min(n.reservedUntil, n.claim.LeaseUntil)", "n.reservedUntil"},
		{"timeguard/bounds.go", "return max(reserved, min(now+window.Milliseconds(), lease))", "return max(reserved, now+window.Milliseconds())"}}},
	{"the lease bound goes down with the clock", []change{{"coordinator/holding.go",
		"s.LeaseUntil = max(s.LeaseUntil, min(e.now+lease.Milliseconds(), e.horizon.usable))", "s.LeaseUntil = min(e.now+lease.Milliseconds(), e.horizon.usable)"}}},
	{"a resume's lease bound counts before it is acknowledged", []change{{"coordinator/resume.go",
		"	slot, err := h.nextGrant(cl, *v.slot, lease, goesOn)", "	h.LeaseUntil, h.Confirmed = max(v.slot.LeaseUntil, h.LeaseUntil, c.Now()+lease.Milliseconds()), true\n	slot, err := h.nextGrant(cl, *v.slot, lease, goesOn)"}}},
	{"a heartbeat's lease bound counts before it is acknowledged", []change{{"coordinator/heartbeat.go",
		"	h.holding = d.holding\n",
		"	h.holding = d.holding\n	if h.Confirmed {\n		h.LeaseUntil = d.slot.LeaseUntil\n	}\n"}}},
	{"a start from the cache beyond the lease bound", []change{
		{"internal/core/node/acquire.go", "case a.cached && leased && (lost ||", "case a.cached && (lost ||"},
		{"internal/core/node/acquire.go", "	n.hold.GoAlone(s.reservedUntil, s.generation)\n", "	n.hold.GoAlone(s.reservedUntil, s.generation)\n	n.hold.LeaseUntil = max(n.hold.LeaseUntil, n.now()+60_000)\n"}}},
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
	{"a stop writes an end below the floor", []change{
		{"worker/snowflake.go", "		return g.floor\n	}\n	return Tick((pos-1)>>g.shift) + 1", "		return g.tick(g.clock.Now())\n	}\n	return Tick((pos-1)>>g.shift) + 1"},
		{"coordinator/stop.go", "max(h.Floor, end)", "end"}}},
	{"a slot is released before the local record is invalid", []change{
		{"internal/core/node/stop.go", "if err := n.cfg.Cache.Invalidate(); err != nil {", "if err := error(nil); err != nil {"},
		{"internal/core/node/stop.go", "n.cfg.Cache.Remove()", "error(nil)"}}},

	// Ticks.
	// A tenure issues ticks below FloorTick(b), where b is the lesser of the reserved bound
	// and the lease bound. The next holder's floor lo is at least b. Rounding only one of
	// the two the wrong way leads to no duplicate ID, so the list has no mutant for it:
	//   - Floors rounded down: FloorTick(lo) >= FloorTick(b), above all issued ticks.
	//   - Bounds rounded up: the issued ticks are below CeilTick(b) <= CeilTick(lo).
	// With both, the two holders overlap in the tick of b. (The simulation's checks of
	// single ticks find either one.)
	{"floors are rounded down, the reserved bound and the lease bound up", []change{
		{"internal/core/node/acquire.go", "Floor: n.layout.CeilTick(claim.Floor)", "Floor: n.layout.FloorTick(claim.Floor)"},
		{"internal/core/node/reserve.go", "n.layout.FloorTick(min(n.reservedUntil, n.claim.LeaseUntil))", "n.layout.CeilTick(min(n.reservedUntil, n.claim.LeaseUntil))"}}},
	{"no wait when a tick has run out", []change{{"worker/snowflake.go",
		"take := min(int64(n), g.runMask+1-first&g.runMask)", "take := int64(n)"}}},

	// A ZooKeeper that has lost data.
	{"no confirming", []change{{"coordinator/confirm.go",
		"	if cl.ConfirmMs == 0 {", "	if true {"}}},
	{"a restart does not confirm again", []change{{"coordinator/resume.go",
		"if !goesOn || !before.goesOn(v, e) {", "if _ = before; false {"}}},
	{"a restart makes unconfirmed records confirmed", []change{{"internal/core/node/acquire.go",
		"	n.hold = n.coord.Recall(rec.Claim)\n",
		"	rec.Claim.Confirmed, rec.Claim.LeaseUntil = true, max(rec.Claim.LeaseUntil, rec.Claim.ReservedUntil+60_000)\n	n.hold = n.coord.Recall(rec.Claim)\n"}}},
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
	{"the client takes its time to find ZooKeeper again", []change{{"internal/core/node/record.go",
		"		n.cfg.Store.Hurry(notice)\n", "		_ = notice\n"}}},
	{"a heartbeat too slow for the confirming time", []change{{"internal/core/node/join.go",
		"err != nil && !(confirm == 0 && n.cfg.InMemory)", "err != nil && false"}}},
	{"a state is good in any ZooKeeper", []change{{"internal/core/node/acquire.go",
		"n.newcomer(), rec.ZooKeeper != \"\" &&", "n.newcomer(), false &&"}}},
	{"a state file stays after a release", []change{{"internal/core/node/stop.go",
		"n.cfg.Cache.Remove()", "error(nil)"}}},
	{"every ID of a run has the same value", []change{{"worker/id.go",
		"return r.First + ID(i)*r.Step", "return r.First"}}},

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
	{"a count of rollbacks that has come round begins at the clock", []change{
		{"worker/generator.go", "g.free[value] <= tick", "g.free[value] <= tick || true"},
		{"worker/generator.go", "newSnowflake(&g.cfg, value, g.free[value])", "newSnowflake(&g.cfg, value, min(from.tick(g.cfg.Clock.Now()), g.free[value]))"}}},
	{"a stop writes the end of the last snowflake", []change{
		{"worker/generator.go", "end = max(end, free)", "_ = free"},
		{"coordinator/stop.go", "max(h.Floor, end)", "end"}}},
	{"borrowed IDs are not bounded by the reserved bound and the lease bound", []change{
		{"worker/snowflake.go", "			if at >= limit {\n				return Run{}, Pause{}, ErrLimit // all below it has been borrowed\n			}\n", ""}}},
	{"a holder that ZooKeeper lost has not borrowed", []change{
		{"coordinator/confirm.go", "cl.ConfirmMs+cl.BorrowMs", "cl.ConfirmMs"},
		{"coordinator/holding.go", "e.now+cl.BorrowMs", "e.now"},
		{"coordinator/doubt.go", " + e.mine.BorrowMs", ""}}},
	{"a clock coasts as far as it likes", []change{
		{"timeguard/issuing.go", "-diff <= c.coast.Load()", "true"}}},
}

// worlds names the world of the simulation that catches a mutant, by the mutant's name. The
// other mutants are caught in the plain world.
var worlds = map[string]string{
	"a count of rollbacks that has come round begins at the clock":           "one rollback bit",
	"a stop writes the end of the last snowflake":                            "three rollback bits",
	"borrowed IDs are not bounded by the reserved bound and the lease bound": "borrow",
	"a holder that ZooKeeper lost has not borrowed":                          "borrow",
	"a clock coasts as far as it likes":                                      "coast",
	"a heartbeat too slow for the confirming time":                           "slow heartbeats",
}
