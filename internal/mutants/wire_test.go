package mutants

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ofTheWire are mutants of lineproto without one of the safeguards that keep greedy
// clients from holding others up, with the tests that have to notice.
var ofTheWire = []struct {
	mutant
	tests string
}{
	{mutant{"a turn takes all that an order lacks", []change{{"lineproto/turns.go",
		"return min(max(roundOfIDs/waiting, minSlice), maxSlice)", "return max(lacks, maxSlice)"}}},
		"TestIDsAreSharedByConnections"},
	{mutant{"small orders wait behind large ones", []change{{"lineproto/turns.go",
		"	case lacks <= smallOrder:\n		return small\n", ""}}},
		"TestIDsAreSharedByConnections"},
	{mutant{"large orders wait until there are no small ones", []change{{"lineproto/turns.go",
		"t.passed[i] >= passedBy", "false"}}},
		"TestEveryLineGetsTurns"},
	{mutant{"while IDs are scarce, requests take as many at once as ever", []change{{"lineproto/turns.go",
		"		return tinyOrder\n	}\n	return maxSlice", "		return maxSlice\n	}\n	return maxSlice"}}},
		"TestLoopAtOnce"},
	{mutant{"while IDs are scarce, goroutines overtake those who wait", []change{{"lineproto/relay.go",
		"less = maxSlice\n", "less = 0\n"}}},
		"TestRelayHandsOnTheTurnInOrder$"},
	{mutant{"several goroutines have the turn", []change{{"lineproto/relay.go",
		"	if r.taken {\n		if p.owner", "	if false {\n		if p.owner"}}},
		"TestRelayHandsOnTheTurnInOrder$|TestOneLargeOrderWaits/.*/goroutines"},
	{mutant{"who gives up waiting keeps the turn", []change{{"lineproto/relay.go",
		"	default: // take has received it\n	}\n	r.handOn()", "	default: // take has received it\n	}"}}},
		"TestCancelledWaiterHandsOnTheTurn"},
	{mutant{"HTTP takes no turn", []change{{"lineproto/relay.go",
		"	may, err := s.relay.take(ctx, &p, n, rankOf(n, false))", "	may, err := n, error(nil)\n	s.relay.taken, p.in = true, nil"}}},
		"TestReserveTakesTurns"},
	{mutant{"no bound on accepted work", []change{{"lineproto/turns.go",
		"backlog+n <= ceiling", "true"}}},
		"TestBacklogIsBounded$"},
	{mutant{"clients that may be gone fill the backlog", []change{{"lineproto/turns.go",
		"		ceiling /= 2\n", ""}}},
		"TestHalfClosedClientsGetHalfOfTheBacklog"},
	{mutant{"an order that is dropped stays in the backlog", []change{{"lineproto/order.go",
		"	if s.order.accepted {\n", "	if false {\n"}}},
		"TestBacklogIsGivenBack|TestRefusalReplacesTheWholeReply"},
	{mutant{"an order is answered with what it has", []change{{"lineproto/order.go",
		"case o.lacks() == 0:", "case o.lacks() == 0, s.ranOut:"}}},
		"TestAllOrNothing|TestBatch"},
	{mutant{"a connection that is gone is read", []change{{"lineproto/driver_linux.go",
		"if events&lost != 0 {", "if false {"}}},
		"TestLoopDropsLostConnections"},
	{mutant{"a connection that is gone keeps its place", []change{{"lineproto/driver_linux.go",
		"	case events&lost != 0:\n		d.close(c)\n", ""}}},
		"TestLoopWatchesWaitingConnections"},
	{mutant{"a goroutine serves a client that is gone", []change{{"lineproto/conn.go",
		"= peerState(c.nc); gone {", "= peerState(c.nc); gone && false {"}}},
		"TestLostConnectionIsNotServed/.*/goroutines"},
	{mutant{"clients that may be gone wait beside the others", []change{{"lineproto/driver_linux.go",
		"		d.l.queue.part(&c.place)\n", ""}}},
		"TestLoopWatchesWaitingConnections"},
	{mutant{"input that waits is told of over and over", []change{{"lineproto/driver_linux.go",
		"	default:\n		d.ask(c, awaitEnd)\n	}", "	}"}}},
		"TestLoopWatchesWaitingConnections"},
	{mutant{"a loop gives turns to all before it looks again", []change{{"lineproto/driver_linux.go",
		"for left := roundOfWork; left > 0; {", "for left := 100 * roundOfWork; left > 0; {"}}},
		"TestLoopRounds"},
	{mutant{"a loop waits for tick after tick before it looks again", []change{{"lineproto/driver_linux.go",
		"c.s.ranOut {", "false {"}}},
		"TestLoopRounds"},
	{mutant{"a sweep closes all that is overdue", []change{{"lineproto/loopend_linux.go",
		" && closed < closedInARound", ""}}},
		"TestLoopSweepsInParts"},
	{mutant{"all large orders wait for a tick", []change{{"lineproto/loop_linux.go",
		"	if l.held != nil {\n		return large\n	}\n", ""}}},
		"TestOneLargeOrderWaits/.*/loops"},
	{mutant{"text is kept for clients that do not read", []change{{"lineproto/driver_linux.go",
		"c.sent == 0 && c.s.unrender()", "false"}}},
		"TestLoopKeepsNoText"},
}

// TestWireMutantsAreCaught is a part of `make mutants`.
func TestWireMutantsAreCaught(t *testing.T) {
	if os.Getenv("FLAKED_MUTANTS") == "" {
		t.Skip("takes minutes: run `make mutants`")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caught := 0
	for _, m := range ofTheWire {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "lineproto.test")
			m.compile(t, root, "test", "-c", "-vet=off", "-o", binary, "./lineproto")
			cmd := exec.Command(binary, "-test.run", m.tests, "-test.timeout", "30s", "-rapid.nofailfile")
			cmd.Dir = filepath.Join(root, "lineproto")
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			switch {
			case err == nil:
				t.Errorf("%s has not noticed", m.tests)
			case !errors.As(err, &failed) || !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: test timed out"):
				t.Errorf("%v\n%s", err, out)
			default:
				caught++
			}
		})
	}
	fmt.Printf("\n%d of %d mutants of the wire caught\n", caught, len(ofTheWire))
}

func TestWireMutantsFollowTheCode(t *testing.T) {
	for _, m := range ofTheWire {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) { m.changed(t, "../..") })
	}
}
