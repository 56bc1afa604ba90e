package health

import (
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/core/node"
)

// Severity says how urgent a problem is.
type Severity string

const (
	// Critical: a node gives no IDs or no values of a sequence, soon will not, or cannot start. Two others are critical:
	// IDs may repeat (Development), and ZooKeeper cannot show which nodes are connected (ZooKeeperLocal). A node that
	// drains or stops is critical, too, although nobody needs to act.
	Critical Severity = "critical"
	// Warning: something else needs attention.
	Warning Severity = "warning"
)

// Problem is a row of the table of causes, or such a row with its details filled in. status, doctor, the page, the
// probes, the alerts and docs/troubleshooting.md take their words from the table. Scripts rely on the JSON.
type Problem struct {
	// Cause is a fixed word, the key of the table.
	Cause    string   `json:"cause"`
	Severity Severity `json:"severity"`
	// Text says what is wrong, without a full stop. In the table, %s stands for details. Clients says in sentences what
	// that means for clients, and Advice what to do.
	Text    string `json:"text"`
	Clients string `json:"clients"`
	Advice  string `json:"advice"`
	// Later says what to do when clients are served again. Only docs/troubleshooting.md has it.
	Later string `json:"-"`
}

// String returns the sentences of a problem.
func (p Problem) String() string {
	return p.Text + ". " + p.Clients + " " + p.Advice
}

// With returns the problem of a row, with these details.
func (p Problem) With(details string) Problem {
	p.Text = strings.Replace(p.Text, "%s", details, 1)
	return p
}

const (
	confirmWait = "Wait for the confirming time, 12 s by default."
	setClock    = "Check with chronyc tracking. If the clock is right now, wait. Else set it right. " +
		"The node then serves again by itself. Do not restart it."
	checkClock = "Check its time synchronisation (chronyc tracking). Let it slew a fast clock: a step back makes " +
		"nodes refuse."
	noAction = "No action needed: clients use other nodes."
	raiseMax = "If the users can keep larger values, raise the max (flaked seq set 'NAME' --max VALUE), or a " +
		"template's --max-names. Else create another sequence."
)

// What problems mean for clients.
const (
	noIDs      = "Clients get no IDs."
	otherNodes = "Clients get IDs from other nodes only."
	unnoticed  = "Clients notice nothing."
	untilLease = "Clients that ask for IDs notice nothing until the lease expires. Then the node refuses."
	noNewNode  = "Clients notice nothing, but no new node can start."
	beyond5s   = "Clients notice nothing. Beyond 5 s, a node refuses if most others agree."
	noValues   = "Clients get errors for these sequences. IDs are not affected."
)

//go:generate go test . -run TestGuideHasTheTables -args -write

// refusals are the rows of node.Causes: why a node is not ready.
var refusals = []Problem{
	refusal(node.CauseNoWorkerYet, "Starting: no worker acquired yet", "Wait. If this lasts, the node's log says why.", ""),
	refusal(node.CauseZooKeeperUnreachable, "ZooKeeper does not answer%s, and the node cannot start without it",
		"Start ZooKeeper, or correct --zk or the network to it. flaked serve gives up after a minute.", ""),
	refusal(node.CauseZooKeeperSlow, "ZooKeeper answers too slowly for the node to acquire a worker",
		"Wait. If this lasts, find out what slows ZooKeeper down.", ""),
	refusal(node.CauseConfirming, "The node is new, or its lease had expired. It confirms its worker", confirmWait, ""),
	refusal(node.CauseLeaseExpiredAway, "Cut off for longer than its lease. The node confirms its worker", confirmWait, ""),
	refusal(node.CauseNewWorker, "The machine's clock went back. The node confirms another worker",
		confirmWait, "Find out what set the clock back."),
	refusal(node.CauseBelowFloor, "Waiting until the clock passes the previous process's reserved bound",
		"Wait for 3 s. If this lasts, the machine's clock went back: set it right.", ""),
	refusal(node.CauseReservedBound, "The state directory cannot be written%s, or the process stood still",
		"If the process stood still, wait for a second. Else free space on the disk of --state-dir, or repair the "+
			"disk.", "Give --state-dir a disk of its own, and the node more CPU time."),
	refusal(node.CauseLeaseBorrowed, "A burst borrowed all time up to the end of the lease",
		"Wait.", "If this happens often, check whether heartbeats renew the lease."),
	refusal(node.CauseClockBehind, "The machine's clock went back. It is behind the last ID%s", setClock, ""),
	refusal(node.CauseClockWrong, "The machine's clock is wrong%s",
		setClock+" If it is right, others are wrong: see CLOCK in flaked status.", ""),
	refusal(node.CauseLeaseExpired, "The lease has expired: no heartbeat succeeded for too long%s",
		"Restore ZooKeeper, or the network to it. The node then serves again by itself, after the confirming time. Do "+
			"not restart it.", "Find out why ZooKeeper was away for so long."),
	refusal(node.CauseLostWorker, "The node lost its worker and is acquiring another one. The log says why",
		"Wait. The node then serves by itself.", "Read in the log why the node lost it."),
	refusal(node.CauseTimeUsedUp, "The layout's time field is used up, or the machine's clock is far ahead",
		"Check the clock. If it is right, create a cluster with another layout.", ""),
	{string(node.CauseSequences), Critical,
		"The node has just started and takes no values of named sequences yet",
		"The node gives IDs. Values of sequences come from other nodes only.",
		"Wait for a heartbeat, or for the confirming time if the node is new.", ""},
	refusal(node.CauseDraining, "The node drains: it still answers open connections, and stops soon", noAction, ""),
	refusal(node.CauseStopping, "The node is stopping", noAction, ""),
}

func refusal(of node.Cause, text, advice, later string) Problem {
	return Problem{string(of), Critical, text, otherNodes, advice, later}
}

// The problems of nodes that may serve, of workers, of the cluster and of its sequences. doctor, the page and the
// commands use the exported rows, too.
var (
	noNodeServes = Problem{"no-node-serves", Critical, "No node serves", noIDs,
		"See the problems of the nodes. If there are none, start the nodes whose process is gone.", ""}
	pastLease = Problem{"past-lease", Critical, "A connected node's lease has expired",
		otherNodes, "The node's log says why it cannot renew the lease.", ""}
	down = Problem{"down", Critical, "The node is not connected to ZooKeeper and does not answer%s", otherNodes,
		"Start the node again, restart it if it hangs, or restore its network.", "If the machine is gone for good, release its worker."}
	disconnected = Problem{"disconnected", Critical, "The node is not connected to ZooKeeper",
		"Clients notice nothing until its lease expires, if it runs.",
		"Start the node again, or restore its connection to ZooKeeper.", ""}
	silent = Problem{"silent", Critical, "The node does not answer%s", otherNodes,
		"Check the process and the network to it.", ""}
	heartbeats = Problem{"heartbeats-missed", Critical, "The node is connected, and has missed three heartbeats",
		otherNodes, "Its log says why. If its process does not answer, restart it.", ""}
	Disk = Problem{node.TroubleDisk, Critical, "The node cannot write to its state directory%s",
		"Clients get errors from this node within seconds.",
		"Free space on its disk, make it writable again, or repair it at once.", "Watch the space on that disk."}
	noZooKeeper = Problem{node.TroubleZooKeeper, Critical, "The node has had no answer from ZooKeeper%s", untilLease,
		"Restore ZooKeeper, or the network to it, before the lease expires. A restart does not help.", ""}
	ZooKeeperQuota = Problem{node.TroubleQuota, Critical, "ZooKeeper refuses writes, because a quota is reached",
		untilLease,
		"Raise it: setquota -N COUNT or -B BYTES in zkCli.sh.", ""}
	ClusterDamaged = Problem{node.TroubleDamaged, Critical, "ZooKeeper's record of the cluster is damaged", untilLease,
		"Remove /flaked/CLUSTER/cluster with ZooKeeper's own client: a running node puts it back, and freezes " +
			"registration. If no node runs, restore its text from a backup.", ""}
	ZooKeeperLocal = Problem{node.TroubleLocalSession, Critical,
		"ZooKeeper uses local sessions, so it cannot show which nodes are connected", unnoticed,
		"Set localSessionsUpgradingEnabled=true in zoo.cfg of all its servers, and restart them one by one. " +
			"Release no worker until then.", ""}
	ZooKeeperDown = Problem{"zookeeper-down", Critical, "ZooKeeper cannot be reached%s", untilLease,
		"Check --zk (FLAKED_ZK), and that ZooKeeper runs and has a quorum.", ""}
	sequencesDamaged = Problem{"sequences-damaged", Critical, "Damaged records of sequences%s", noValues,
		"If flaked does not know the mode, upgrade it, and do not touch the record. Restore or remove others with " +
			"ZooKeeper's own client, below /flaked/CLUSTER.", ""}
	sequencesFrozen = Problem{"sequences-frozen", Critical, "Frozen sequences, which issue no values%s", noValues,
		"flaked seq show 'NAME' says why, and what to do.", ""}
	sequencesExhausted = Problem{"sequences-exhausted", Critical, "Exhausted sequences, whose values are all taken%s",
		"Clients get errors for these sequences when nodes have issued the values that they hold.",
		raiseMax, ""}
	sequencesUnserved = Problem{"sequences-unserved", Critical, "Sequences of which a ready node gets no values%s",
		"Clients get errors for these sequences from this node.",
		"If it is confirming, wait. Else let flaked doctor check whether ZooKeeper can be reached, and its latency.", ""}
	sequencesNoOwner = Problem{"sequences-no-owner", Critical, "Ordered sequences whose owner a node cannot ask%s",
		"Clients get errors for these sequences from this node.",
		"If the owner has just stopped, wait for the lease, 3 s by default. Else let flaked doctor check whether " +
			"nodes reach each other: see --advertise, the network and the tokens.", ""}
	sequencesCeiling = Problem{"sequences-ceiling", Warning, "Sequences at their ceiling%s",
		"Clients get fewer values than they ask for.",
		"Raise the ceiling (flaked seq set 'NAME' --ceiling N), or find the client that asks for so many.", ""}
	Development = Problem{"development", Critical,
		"A development node (--dev) has no ZooKeeper and keeps nothing", "Clients may get an ID twice.",
		"Do not keep its IDs. For unique IDs, start the node with --zk.", ""}
	NoCluster = Problem{"no-cluster", Critical, "Cluster not found in ZooKeeper", noNewNode,
		"Check --zk and --cluster. If its nodes have served before, ZooKeeper has lost data: create nothing, and see " +
			"docs/troubleshooting.md. Otherwise `flaked cluster init` creates it.", ""}
	ZooKeeperDenied = Problem{"zookeeper-denied", Critical, "ZooKeeper denied access", noNewNode,
		"Give --zk-auth-file with the user that created the records.", ""}
	OtherCluster = Problem{"other-cluster", Critical, "The state directory belongs to another cluster", otherNodes,
		"Give this cluster its own --state-dir, or correct --zk and --cluster.", ""}

	notFromHere = Problem{"zookeeper-elsewhere", Warning, "ZooKeeper cannot be reached from here, but a node can " +
		"reach it", unnoticed,
		"Check --zk (FLAKED_ZK) and the network.", ""}
	denied = Problem{"access-denied", Warning, "The node denied access%s", unnoticed,
		"Give --token-file or --tls, as its answer says.", ""}
	replaced = Problem{"replaced", Warning, "The node is not connected, and another node answers at its address%s",
		unnoticed,
		"Start the old node again, at another address. If it is gone for good, wait until its lease expires.", ""}
	notShown = Problem{"not-live-yet", Warning, "ZooKeeper does not show the node as live yet, but the node reaches it",
		unnoticed, "Wait for the next heartbeat. If this lasts, the log of the node says why.", ""}
	unanswered = Problem{"no-answer", Warning, "The node is live in ZooKeeper, but does not answer at its address%s",
		"Clients notice nothing, unless the process was killed or hangs.",
		"If its process does not run, start it. Else check its log, and the network to the address.", ""}
	anotherNode = Problem{"another-node", Warning, "Another node answers at the address of the node%s", unnoticed,
		"Give each node a --listen and --advertise address of its own.", ""}
	recordMissing = Problem{"record-missing", Warning, "ZooKeeper has no readable record of the worker", unnoticed,
		"If its holder has stopped, start it with its state directory: a holder restores the record.", ""}
	fromCache = Problem{node.TroubleFromCache, Warning,
		"The node runs only from its state directory: ZooKeeper has no record of this start yet", untilLease,
		"Restore its connection to ZooKeeper.", ""}
	ClockOff    = Problem{node.TroubleOffset, Warning, "The clock is more than 500 ms off%s", beyond5s, checkClock, ""}
	LeaderClock = Problem{"leader-clock", Warning, "Most clocks are more than 500 ms off that of ZooKeeper's leader",
		beyond5s, "Check the clock of ZooKeeper's leader first.", ""}
	clockLeap = Problem{node.TroubleLeap, Warning,
		"The machine's clock leapt%s ahead, unconfirmed by ZooKeeper and peers. IDs do not follow the leap", unnoticed,
		"Check its time synchronisation (chronyc tracking). Up to 5 s, let it slew the clock back, else step it: " +
			"IDs have not followed.", ""}
	coasting = Problem{node.TroubleCoasting, Warning,
		"The machine's clock went back%s, and the node coasts: IDs continue from the monotonic clock", unnoticed,
		checkClock, ""}
	suspectClock = Problem{"clock-suspect", Warning, "The newest report is%s old by this machine's clock", unnoticed,
		"Either this clock is ahead, or no live node reports. After an outage of ZooKeeper, wait for heartbeats.", ""}
	Unread = Problem{"unread", Warning, "The cluster could not be read from ZooKeeper%s", unnoticed,
		"Check whether ZooKeeper is slow or down.", ""}
	Frozen = Problem{node.TroubleFrozen, Warning, "Registration is frozen%s, because ZooKeeper lost data", noNewNode,
		"Start the missing nodes again with their state directories, and wait. Ending the freeze early can repeat " +
			"IDs: see flaked cluster thaw --help.", ""}
	FrozenByOperator = Problem{"frozen-by-operator", Warning, "Registration is frozen%s", noNewNode,
		"Wait, or ask the operator whether flaked cluster thaw may end it early.", ""}
	FewFree = Problem{"few-free", Warning, "Fewer than 5 % of the workers are free%s",
		"Clients notice nothing, but soon no new node can start.",
		"Wait for leases to expire, and give nodes that come and go --release-on-exit.", ""}
	sequencesNearlyUsed = Problem{"sequences-nearly-used", Warning, "Sequences used to 80 % or more%s",
		"Clients notice nothing until a sequence is exhausted.",
		raiseMax, ""}
	sequencesOwnerGone = Problem{"sequences-owner-gone", Warning,
		"Ordered sequences whose owner has not renewed its lease%s",
		"Requests for these wait until another node takes over: 3 s by default.",
		"Ask for a value (flaked seq next). If that fails, the error says why.", ""}
	sequencesUnread = Problem{"sequences-unread", Warning, "The named sequences could not be read from ZooKeeper%s",
		unnoticed, "Check ZooKeeper (flaked doctor), then see flaked seq list.", ""}
	TimeEnding = Problem{"time-field-ending", Warning, "The layout's time field ends%s",
		"Clients notice nothing until then. Then they get no IDs.",
		"Plan a cluster with another layout: flaked layout --help.", ""}
)

// Causes is the table: all rows, the critical ones first.
var Causes = slices.Concat([]Problem{noNodeServes}, refusals, []Problem{
	pastLease, down, disconnected, silent, heartbeats, Disk, noZooKeeper, ZooKeeperQuota, ZooKeeperLocal,
	ClusterDamaged, ZooKeeperDown, sequencesDamaged, sequencesFrozen, sequencesExhausted, sequencesNoOwner,
	sequencesUnserved,
	Development, NoCluster, ZooKeeperDenied, OtherCluster,
	notFromHere, denied, replaced, notShown, unanswered, anotherNode, recordMissing, fromCache, ClockOff,
	LeaderClock, clockLeap, coasting, suspectClock, Unread, Frozen, FrozenByOperator, FewFree, sequencesCeiling,
	sequencesOwnerGone, sequencesNearlyUsed, sequencesUnread, TimeEnding,
})

// ProblemOf returns the row of a word. A node of another release may refuse for a cause that is not in the table.
func ProblemOf(word string) Problem {
	if i := row(word); i >= 0 {
		return Causes[i]
	}
	return Problem{word, Critical, "The reply to READY and the log say why", otherNodes, "See docs/troubleshooting.md.", ""}
}

// Known reports whether the table has a row of the word.
func Known(word string) bool { return row(word) >= 0 }

func row(word string) int {
	return slices.IndexFunc(Causes, func(p Problem) bool { return p.Cause == word })
}

// isRefusal reports whether a node with this problem is not ready: the problem is a row of refusals, or a cause of
// another release.
func (p Problem) isRefusal() bool {
	return !Known(p.Cause) || slices.ContainsFunc(refusals, func(r Problem) bool { return r.Cause == p.Cause })
}

// WorstFirst sorts problems by their rows in the table. It never returns nil, so that JSON has a list.
func WorstFirst(found []Problem) []Problem {
	sorted := append([]Problem{}, found...)
	slices.SortStableFunc(sorted, func(a, b Problem) int { return row(a.Cause) - row(b.Cause) })
	return sorted
}
