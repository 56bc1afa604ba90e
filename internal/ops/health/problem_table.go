package health

import (
	"cmp"
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
	refusal(node.CauseNoWorkerYet, "Starting: no worker acquired yet", "Wait. If this lasts, the node's log says why."),
	refusal(node.CauseZooKeeperUnreachable, "ZooKeeper does not answer%s, and the node cannot start without it",
		"Start ZooKeeper, or correct --zk or the network to it. flaked serve gives up after a minute."),
	refusal(node.CauseZooKeeperSlow, "ZooKeeper answers too slowly for the node to acquire a worker",
		"Wait. If this lasts, find out what slows ZooKeeper down."),
	refusal(node.CauseConfirming, "The node is new, or its lease had expired. It confirms its worker", confirmWait),
	refusal(node.CauseLeaseExpiredAway, "Cut off for longer than its lease. The node confirms its worker", confirmWait),
	refusal(node.CauseNewWorker, "The machine's clock went back. The node confirms another worker",
		confirmWait).andLater("Find out what set the clock back."),
	refusal(node.CauseBelowFloor, "Waiting until the clock passes the previous process's reserved bound",
		"Wait for 3 s. If this lasts, the machine's clock went back: set it right."),
	refusal(node.CauseReservedBound, "The state directory cannot be written%s, or the process stood still",
		"If the process stood still, wait for a second. Else free space on the disk of --state-dir, or repair the "+
			"disk.").andLater("Give --state-dir a disk of its own, and the node more CPU time."),
	refusal(node.CauseLeaseBorrowed, "A burst borrowed all time up to the end of the lease",
		"Wait.").andLater("If this happens often, check whether heartbeats renew the lease."),
	refusal(node.CauseClockBehind, "The machine's clock went back. It is behind the last ID%s", setClock),
	refusal(node.CauseClockWrong, "The machine's clock is wrong%s",
		setClock+" If it is right, others are wrong: see CLOCK in flaked status."),
	refusal(node.CauseLeaseExpired, "The lease has expired: no heartbeat succeeded for too long%s",
		"Restore ZooKeeper, or the network to it. The node then serves again by itself, after the confirming time. Do "+
			"not restart it.").andLater("Find out why ZooKeeper was away for so long."),
	refusal(node.CauseLostWorker, "The node lost its worker and is acquiring another one. The log says why",
		"Wait. The node then serves by itself.").andLater("Read in the log why the node lost it."),
	refusal(node.CauseTimeUsedUp, "The layout's time field is used up, or the machine's clock is far ahead",
		"Check the clock. If it is right, create a cluster with another layout."),
	{
		Cause: string(node.CauseSequences), Severity: Critical,
		Text:    "The node has just started and takes no values of named sequences yet",
		Clients: "The node gives IDs. Values of sequences come from other nodes only.",
		Advice:  "Wait for a heartbeat, or for the confirming time if the node is new.",
	},
	refusal(node.CauseDraining, "The node drains: it still answers open connections, and stops soon", noAction),
	refusal(node.CauseStopping, "The node is stopping", noAction),
}

func refusal(of node.Cause, text, advice string) Problem {
	return Problem{Cause: string(of), Severity: Critical, Text: text, Clients: otherNodes, Advice: advice}
}

// andLater returns the problem with advice for the time when clients are served again.
func (p Problem) andLater(advice string) Problem {
	p.Later = advice
	return p
}

// The problems of nodes that may serve, of workers, of the cluster and of its sequences. doctor, the page and the
// commands use the exported rows, too.
var (
	noNodeServes = Problem{Cause: "no-node-serves", Severity: Critical,
		Text:    "No node serves",
		Clients: noIDs,
		Advice:  "See the problems of the nodes. If there are none, start the nodes whose process is gone.",
	}
	refusing = Problem{Cause: "refusing", Severity: Critical,
		Text:    "The node reported that it refuses to serve",
		Clients: otherNodes,
		Advice:  "Its READY reply and its log say why.",
	}
	pastLease = Problem{Cause: "past-lease", Severity: Critical,
		Text:    "A connected node's lease has expired",
		Clients: otherNodes,
		Advice:  "The node's log says why it cannot renew the lease.",
	}
	down = Problem{Cause: "down", Severity: Critical,
		Text:    "The node is not connected to ZooKeeper and does not answer%s",
		Clients: otherNodes,
		Advice:  "Start the node again, restart it if it hangs, or restore its network.",
		Later:   "If the machine is gone for good, release its worker.",
	}
	nodeDisconnected = Problem{Cause: "disconnected", Severity: Critical,
		Text:    "The node is not connected to ZooKeeper",
		Clients: "Clients notice nothing until its lease expires, if it runs.",
		Advice:  "Start the node again, or restore its connection to ZooKeeper.",
	}
	silent = Problem{Cause: "silent", Severity: Critical,
		Text:    "The node does not answer%s",
		Clients: otherNodes,
		Advice:  "Check the process and the network to it.",
	}
	heartbeatsMissed = Problem{Cause: "heartbeats-missed", Severity: Critical,
		Text:    "The node is connected, and has missed three heartbeats",
		Clients: otherNodes,
		Advice:  "Its log says why. If its process does not answer, restart it.",
	}
	Disk = Problem{Cause: node.TroubleDisk, Severity: Critical,
		Text:    "The node cannot write to its state directory%s",
		Clients: "Clients get errors from this node within seconds.",
		Advice:  "Free space on its disk, make it writable again, or repair it at once.",
		Later:   "Watch the space on that disk.",
	}
	noZooKeeper = Problem{Cause: node.TroubleZooKeeper, Severity: Critical,
		Text:    "The node has had no answer from ZooKeeper%s",
		Clients: untilLease,
		Advice:  "Restore ZooKeeper, or the network to it, before the lease expires. A restart does not help.",
	}
	ZooKeeperQuota = Problem{Cause: node.TroubleQuota, Severity: Critical,
		Text:    "ZooKeeper refuses writes, because a quota is reached",
		Clients: untilLease,
		Advice:  "Raise it: setquota -N COUNT or -B BYTES in zkCli.sh.",
	}
	ClusterDamaged = Problem{Cause: node.TroubleDamaged, Severity: Critical,
		Text:    "ZooKeeper's record of the cluster is damaged",
		Clients: untilLease,
		Advice: "Remove /flaked/CLUSTER/cluster with ZooKeeper's own client: a running node puts it back, and freezes " +
			"registration. If no node runs, restore its text from a backup.",
	}
	ZooKeeperLocal = Problem{Cause: node.TroubleLocalSession, Severity: Critical,
		Text:    "ZooKeeper uses local sessions, so it cannot show which nodes are connected",
		Clients: unnoticed,
		Advice: "Set localSessionsUpgradingEnabled=true in zoo.cfg of all its servers, and restart them one by one. " +
			"Release no worker until then.",
	}
	ZooKeeperDown = Problem{Cause: "zookeeper-down", Severity: Critical,
		Text:    "ZooKeeper cannot be reached%s",
		Clients: untilLease,
		Advice:  "Check --zk (FLAKED_ZK), and that ZooKeeper runs and has a quorum.",
	}
	sequencesDamaged = Problem{Cause: "sequences-damaged", Severity: Critical,
		Text:    "Damaged records of sequences%s",
		Clients: noValues,
		Advice: "If flaked does not know the mode, upgrade it, and do not touch the record. Restore or remove others with " +
			"ZooKeeper's own client, below /flaked/CLUSTER.",
	}
	sequencesFrozen = Problem{Cause: "sequences-frozen", Severity: Critical,
		Text:    "Frozen sequences, which issue no values%s",
		Clients: noValues,
		Advice:  "flaked seq show 'NAME' says why, and what to do.",
	}
	sequencesExhausted = Problem{Cause: "sequences-exhausted", Severity: Critical,
		Text:    "Exhausted sequences, whose values are all taken%s",
		Clients: "Clients get errors for these sequences when nodes have issued the values that they hold.",
		Advice:  raiseMax,
	}
	sequencesUnserved = Problem{Cause: "sequences-unserved", Severity: Critical,
		Text:    "Sequences of which a ready node gets no values%s",
		Clients: "Clients get errors for these sequences from this node.",
		Advice:  "If it is confirming, wait. Else let flaked doctor check whether ZooKeeper can be reached, and its latency.",
	}
	sequencesNoOwner = Problem{Cause: "sequences-no-owner", Severity: Critical,
		Text:    "Ordered sequences whose owner a node cannot ask%s",
		Clients: "Clients get errors for these sequences from this node.",
		Advice: "If the owner has just stopped, wait for the lease, 3 s by default. Else let flaked doctor check whether " +
			"nodes reach each other: see --advertise, the network and the tokens.",
	}
	sequencesCeiling = Problem{Cause: "sequences-ceiling", Severity: Warning,
		Text:    "Sequences at their ceiling%s",
		Clients: "Clients get fewer values than they ask for.",
		Advice:  "Raise the ceiling (flaked seq set 'NAME' --ceiling N), or find the client that asks for so many.",
	}
	Development = Problem{Cause: "development", Severity: Critical,
		Text:    "A development node (--dev) has no ZooKeeper and keeps nothing",
		Clients: "Clients may get an ID twice.",
		Advice:  "Do not keep its IDs. For unique IDs, start the node with --zk.",
	}
	NoCluster = Problem{Cause: "no-cluster", Severity: Critical,
		Text:    "Cluster not found in ZooKeeper",
		Clients: noNewNode,
		Advice: "Check --zk and --cluster. If its nodes have served before, ZooKeeper has lost data: create nothing, and " +
			"see docs/troubleshooting.md. Otherwise `flaked cluster init` creates it.",
	}
	ZooKeeperDenied = Problem{Cause: "zookeeper-denied", Severity: Critical,
		Text:    "ZooKeeper denied access",
		Clients: noNewNode,
		Advice:  "Give --zk-auth-file with the user that created the records.",
	}
	OtherCluster = Problem{Cause: "other-cluster", Severity: Critical,
		Text:    "The state directory belongs to another cluster",
		Clients: otherNodes,
		Advice:  "Give this cluster its own --state-dir, or correct --zk and --cluster.",
	}

	notFromHere = Problem{Cause: "zookeeper-elsewhere", Severity: Warning,
		Text: "ZooKeeper cannot be reached from here, but a node can " +
			"reach it",
		Clients: unnoticed,
		Advice:  "Check --zk (FLAKED_ZK) and the network.",
	}
	denied = Problem{Cause: "access-denied", Severity: Warning,
		Text:    "The node denied access%s",
		Clients: unnoticed,
		Advice:  "Give --token-file or --tls, as its answer says.",
	}
	replaced = Problem{Cause: "replaced", Severity: Warning,
		Text:    "The node is not connected, and another node answers at its address%s",
		Clients: unnoticed,
		Advice:  "Start the old node again, at another address. If it is gone for good, wait until its lease expires.",
	}
	notShown = Problem{Cause: "not-live-yet", Severity: Warning,
		Text:    "ZooKeeper does not show the node as live yet, but the node reaches it",
		Clients: unnoticed,
		Advice:  "Wait for the next heartbeat. If this lasts, the log of the node says why.",
	}
	unanswered = Problem{Cause: "no-answer", Severity: Warning,
		Text:    "The node is live in ZooKeeper, but does not answer at its address%s",
		Clients: "Clients notice nothing, unless the process was killed or hangs.",
		Advice:  "If its process does not run, start it. Else check its log, and the network to the address.",
	}
	anotherNode = Problem{Cause: "another-node", Severity: Warning,
		Text:    "Another node answers at the address of the node%s",
		Clients: unnoticed,
		Advice:  "Give each node a --listen and --advertise address of its own.",
	}
	noRecord = Problem{Cause: "record-missing", Severity: Warning,
		Text:    "ZooKeeper has no readable record of the worker",
		Clients: unnoticed,
		Advice:  "If its holder has stopped, start it with its state directory: a holder restores the record.",
	}
	fromCache = Problem{Cause: node.TroubleFromCache, Severity: Warning,
		Text:    "The node runs only from its state directory: ZooKeeper has no record of this start yet",
		Clients: untilLease,
		Advice:  "Restore its connection to ZooKeeper.",
	}
	ClockOff = Problem{Cause: node.TroubleOffset, Severity: Warning,
		Text:    "The clock is more than 500 ms off%s",
		Clients: beyond5s,
		Advice:  checkClock,
	}
	LeaderClock = Problem{Cause: "leader-clock", Severity: Warning,
		Text:    "Most clocks are more than 500 ms off that of ZooKeeper's leader",
		Clients: beyond5s,
		Advice:  "Check the clock of ZooKeeper's leader first.",
	}
	clockLeap = Problem{Cause: node.TroubleLeap, Severity: Warning,
		Text:    "The machine's clock leapt%s ahead, unconfirmed by ZooKeeper and peers. IDs do not follow the leap",
		Clients: unnoticed,
		Advice: "Check its time synchronisation (chronyc tracking). Up to 5 s, let it slew the clock back, else step it: " +
			"IDs have not followed.",
	}
	coasting = Problem{Cause: node.TroubleCoasting, Severity: Warning,
		Text:    "The machine's clock went back%s, and the node coasts: IDs continue from the monotonic clock",
		Clients: unnoticed,
		Advice:  checkClock,
	}
	suspectClock = Problem{Cause: "clock-suspect", Severity: Warning,
		Text:    "The newest report is%s old by this machine's clock",
		Clients: unnoticed,
		Advice:  "Either this clock is ahead, or no live node reports. After an outage of ZooKeeper, wait for heartbeats.",
	}
	Unread = Problem{Cause: "unread", Severity: Warning,
		Text:    "The cluster could not be read from ZooKeeper%s",
		Clients: unnoticed,
		Advice:  "Check whether ZooKeeper is slow or down.",
	}
	Frozen = Problem{Cause: node.TroubleFrozen, Severity: Warning,
		Text:    "Registration is frozen%s, because ZooKeeper lost data",
		Clients: noNewNode,
		Advice: "Start the missing nodes again with their state directories, and wait. Ending the freeze early can repeat " +
			"IDs: see flaked cluster thaw --help.",
	}
	FrozenByOperator = Problem{Cause: "frozen-by-operator", Severity: Warning,
		Text:    "Registration is frozen%s",
		Clients: noNewNode,
		Advice:  "Wait, or ask the operator whether flaked cluster thaw may end it early.",
	}
	FewFree = Problem{Cause: "few-free", Severity: Warning,
		Text:    "Fewer than 5 % of the workers are free%s",
		Clients: "Clients notice nothing, but soon no new node can start.",
		Advice:  "Wait for leases to expire, and give nodes that come and go --release-on-exit.",
	}
	sequencesNearlyUsed = Problem{Cause: "sequences-nearly-used", Severity: Warning,
		Text:    "Sequences used to 80 % or more%s",
		Clients: "Clients notice nothing until a sequence is exhausted.",
		Advice:  raiseMax,
	}
	sequencesOwnerGone = Problem{Cause: "sequences-owner-gone", Severity: Warning,
		Text:    "Ordered sequences whose owner has not renewed its lease%s",
		Clients: "Requests for these wait until another node takes over: 3 s by default.",
		Advice:  "Ask for a value (flaked seq next). If that fails, the error says why.",
	}
	sequencesUnread = Problem{Cause: "sequences-unread", Severity: Warning,
		Text:    "The named sequences could not be read from ZooKeeper%s",
		Clients: unnoticed,
		Advice:  "Check ZooKeeper (flaked doctor), then see flaked seq list.",
	}
	TimeEnding = Problem{Cause: "time-field-ending", Severity: Warning,
		Text:    "The layout's time field ends%s",
		Clients: "Clients notice nothing until then. Then they get no IDs.",
		Advice:  "Plan a cluster with another layout: flaked layout --help.",
	}
)

// AllProblems is the table: all rows, the critical ones first.
var AllProblems = slices.Concat([]Problem{noNodeServes}, refusals, []Problem{
	refusing, pastLease, down, nodeDisconnected, silent, heartbeatsMissed, Disk, noZooKeeper, ZooKeeperQuota, ZooKeeperLocal,
	ClusterDamaged, ZooKeeperDown, sequencesDamaged, sequencesFrozen, sequencesExhausted, sequencesNoOwner,
	sequencesUnserved,
	Development, NoCluster, ZooKeeperDenied, OtherCluster,
	notFromHere, denied, replaced, notShown, unanswered, anotherNode, noRecord, fromCache, ClockOff,
	LeaderClock, clockLeap, coasting, suspectClock, Unread, Frozen, FrozenByOperator, FewFree, sequencesCeiling,
	sequencesOwnerGone, sequencesNearlyUsed, sequencesUnread, TimeEnding,
})

// ProblemOf returns the row of a word. A node of another release may refuse for a cause that is not in the table.
func ProblemOf(word string) Problem {
	if i := row(word); i >= 0 {
		return AllProblems[i]
	}
	return Problem{Cause: word, Severity: Critical,
		Text:    "The reply to READY and the log say why",
		Clients: otherNodes,
		Advice:  "See docs/troubleshooting.md.",
	}
}

// Known reports whether the table has a row of the word.
func Known(word string) bool { return row(word) >= 0 }

func row(word string) int {
	return slices.IndexFunc(AllProblems, func(p Problem) bool { return p.Cause == word })
}

// isRefusal reports whether a node with this problem is not ready: the problem is a row of refusals, or a cause of
// another release.
func (p Problem) isRefusal() bool {
	return !Known(p.Cause) || slices.ContainsFunc(refusals, func(r Problem) bool { return r.Cause == p.Cause })
}

// WorstFirst sorts problems: the critical ones first, then by their rows in the table. A cause that is not in the table
// comes behind the rows of its severity. WorstFirst never returns nil, so that JSON has a list.
func WorstFirst(found []Problem) []Problem {
	place := func(p Problem) int {
		if i := row(p.Cause); i >= 0 {
			return i
		}
		return len(AllProblems)
	}
	sorted := append([]Problem{}, found...)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), place(a)-place(b)) // "critical" is before "warning"
	})
	return sorted
}
