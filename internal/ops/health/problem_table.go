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
	// Critical: a node gives no IDs or no values of a sequence, soon will not, or cannot start. Two others are
	// critical: IDs may repeat (rowDevelopment), and ZooKeeper cannot show which nodes are connected
	// (rowLocalSessions). A node that drains or stops is critical, too, although nobody needs to act.
	Critical Severity = "critical"
	// Warning: something else needs attention.
	Warning Severity = "warning"
)

// Problem is something that needs attention. status, doctor, the page, the probes and the alerts show problems. Scripts
// rely on the JSON.
type Problem struct {
	// Cause is a fixed word, the key of the table.
	Cause    string   `json:"cause"`
	Severity Severity `json:"severity"`
	// Text says what is wrong, without a full stop. Clients says in sentences what that means for clients, and Advice
	// what to do.
	Text    string `json:"text"`
	Clients string `json:"clients"`
	Advice  string `json:"advice"`
	// Workers are the workers in a Report that have the problem. Text names them.
	Workers []int `json:"-"`
}

// String returns the sentences of a problem.
func (p Problem) String() string {
	return p.Text + ". " + p.Clients + " " + p.Advice
}

// row is a row of the table of causes: a problem whose details are not filled in. docs/troubleshooting.md has the
// table.
type row struct {
	cause    string
	severity Severity
	// text, clients and advice are those of Problem. In text, %s stands for details. In advice, NAME stands for the
	// first of the sequences that have the problem.
	text, clients, advice string
	// cannotRenew means that a node with the problem cannot renew its lease. clients is then untilLease.
	cannotRenew bool
	// onlyNodesSay and adds are for problems of sequences. onlyNodesSay means that ZooKeeper's records never show the
	// problem. adds says what the text adds to the name of each sequence.
	onlyNodesSay bool
	adds         addition
	// later says what to do when clients are served again. Only docs/troubleshooting.md has it.
	later string
}

// addition says what the text of a problem adds to the name of a sequence.
type addition int

const (
	addWhy     addition = iota // SequenceReport.Why
	addRefusal                 // why a node gets no values of the sequence
	addOwner                   // the address of the owner that is gone, or in how many sections of a family it is gone
	addUsed                    // the part of the values that nodes have taken
	addHeld                    // the number of values that nodes hold. If that is 0, SequenceReport.Why
)

// unserved reports whether the problem is that a node gets no values of a sequence.
func (r row) unserved() bool { return r.adds == addRefusal }

// problem returns the problem of a row, with these details.
func (r row) problem(details string) Problem {
	return Problem{Cause: r.cause, Severity: r.severity, Text: strings.Replace(r.text, "%s", details, 1),
		Clients: r.clients, Advice: r.advice}
}

// table has all rows in the order in which this file declares them: the critical ones first. Go initialises the rows in
// this order only if none of them refers to a variable that is declared below it.
var table []row

// declare adds a row to the table, and returns it.
func declare(r row) row {
	if r.cannotRenew {
		r.clients = untilLease
	}
	table = append(table, r)
	return r
}

func declareAll(rows ...row) []row {
	for i := range rows {
		rows[i] = declare(rows[i])
	}
	return rows
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

var rowNoNodeServes = declare(row{cause: "no-node-serves", severity: Critical,
	text:    "No node serves",
	clients: noIDs,
	advice:  "See the problems of the nodes. If there are none, start the nodes whose process is gone.",
})

// refusals are the rows of node.Causes: why a node is not ready.
var refusals = declareAll(
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
	row{
		cause: string(node.CauseSequences), severity: Critical,
		text:    "The node has just started and takes no values of named sequences yet",
		clients: "The node gives IDs. Values of sequences come from other nodes only.",
		advice:  "Wait for a heartbeat, or for the confirming time if the node is new.",
	},
	refusal(node.CauseDraining, "The node drains: it still answers open connections, and stops soon", noAction),
	refusal(node.CauseStopping, "The node is stopping", noAction),
)

func refusal(of node.Cause, text, advice string) row {
	return row{cause: string(of), severity: Critical, text: text, clients: otherNodes, advice: advice}
}

// andLater returns the row with advice for the time when clients are served again.
func (r row) andLater(advice string) row {
	r.later = advice
	return r
}

// The rows of nodes that may serve, of workers, of the cluster and of its sequences.
var (
	rowRefusing = declare(row{cause: "refusing", severity: Critical,
		text:    "The node reported that it refuses to serve",
		clients: otherNodes,
		advice:  "Its READY reply and its log say why.",
	})
	rowPastLease = declare(row{cause: "past-lease", severity: Critical,
		text:    "A connected node's lease has expired",
		clients: otherNodes,
		advice:  "The node's log says why it cannot renew the lease.",
	})
	rowDown = declare(row{cause: "down", severity: Critical,
		text:    "The node is not connected to ZooKeeper and does not answer%s",
		clients: otherNodes,
		advice:  "Start the node again, restart it if it hangs, or restore its network.",
		later:   "If the machine is gone for good, release its worker.",
	})
	rowDisconnected = declare(row{cause: "disconnected", severity: Critical,
		text:    "The node is not connected to ZooKeeper",
		clients: "Clients notice nothing until its lease expires, if it runs.",
		advice:  "Start the node again, or restore its connection to ZooKeeper.",
	})
	rowSilent = declare(row{cause: "silent", severity: Critical,
		text:    "The node does not answer%s",
		clients: otherNodes,
		advice:  "Check the process and the network to it.",
	})
	rowHeartbeatsMissed = declare(row{cause: "heartbeats-missed", severity: Critical,
		text:    "The node is connected, and has missed three heartbeats",
		clients: otherNodes,
		advice:  "Its log says why. If its process does not answer, restart it.",
	})
	_ = declare(row{cause: node.TroubleDisk, severity: Critical,
		text:    "The node cannot write to its state directory%s",
		clients: "Clients may get errors from this node within seconds.",
		advice:  AdviceDisk + " If the directory is gone, restart the node while ZooKeeper answers.",
		later:   "Watch the space on that disk.",
	})
	rowNoZooKeeper = declare(row{cause: node.TroubleZooKeeper, severity: Critical,
		text:        "The node has had no answer from ZooKeeper%s",
		cannotRenew: true,
		advice:      "Restore ZooKeeper, or the network to it, before the lease expires. A restart does not help.",
	})
	rowQuota = declare(row{cause: node.TroubleQuota, severity: Critical,
		text:        "ZooKeeper refuses writes, because a quota is reached",
		cannotRenew: true,
		advice:      "Raise it: setquota -N COUNT or -B BYTES in zkCli.sh.",
	})
	rowLocalSessions = declare(row{cause: node.TroubleLocalSession, severity: Critical,
		text:    "ZooKeeper uses local sessions, so it cannot show which nodes are connected",
		clients: unnoticed,
		advice: "Set localSessionsUpgradingEnabled=true in zoo.cfg of all its servers, and restart them one by one. " +
			"Release no worker until then.",
	})
	rowClusterDamaged = declare(row{cause: node.TroubleDamaged, severity: Critical,
		text:        "ZooKeeper's record of the cluster is damaged",
		cannotRenew: true,
		advice: "Remove /flaked/CLUSTER/cluster with ZooKeeper's own client: a running node puts it back, and freezes " +
			"registration. If no node runs, restore its text from a backup.",
	})
	rowZooKeeperDown = declare(row{cause: "zookeeper-down", severity: Critical,
		text:        "ZooKeeper cannot be reached%s",
		cannotRenew: true,
		advice:      "Check --zk (FLAKED_ZK), and that ZooKeeper runs and has a quorum.",
	})
	rowSequencesDamaged = declare(row{cause: "sequences-damaged", severity: Critical,
		text:    "Damaged records of sequences%s",
		clients: noValues,
		advice: "If flaked does not know the mode, upgrade it, and do not touch the record. Restore or remove others with " +
			"ZooKeeper's own client, below /flaked/CLUSTER.",
	})
	rowSequencesFrozen = declare(row{cause: "sequences-frozen", severity: Critical,
		text:    "Frozen sequences, which issue no values%s",
		clients: noValues,
		advice:  "flaked seq show 'NAME' says why, and what to do.",
	})
	rowSequencesExhausted = declare(row{cause: "sequences-exhausted", severity: Critical,
		text:    "Exhausted sequences, whose values are all taken%s",
		clients: "Clients get errors for these sequences when nodes have issued the values that they hold.",
		advice:  raiseMax,
		adds:    addHeld,
	})
	rowSequencesNoOwner = declare(row{cause: "sequences-no-owner", severity: Critical,
		text:    "Ordered sequences whose owner a node cannot ask%s",
		clients: "Clients get errors for these sequences from this node.",
		advice: "If the owner has just stopped, wait for the lease, 3 s by default. Else let flaked doctor check whether " +
			"nodes reach each other: see --advertise, the network and the tokens.",

		onlyNodesSay: true, adds: addRefusal,
	})
	rowSequencesUnserved = declare(row{cause: "sequences-unserved", severity: Critical,
		text:    "Sequences of which a ready node gets no values%s",
		clients: "Clients get errors for these sequences from this node.",
		advice:  "If it is confirming, wait. Else let flaked doctor check whether ZooKeeper can be reached, and its latency.",

		onlyNodesSay: true, adds: addRefusal,
	})
	rowDevelopment = declare(row{cause: "development", severity: Critical,
		text:    "A development node (--dev) has no ZooKeeper and keeps nothing",
		clients: "Clients may get an ID twice.",
		advice:  "Do not keep its IDs. For unique IDs, start the node with --zk.",
	})
	rowNoCluster = declare(row{cause: "no-cluster", severity: Critical,
		text:    "Cluster not found in ZooKeeper",
		clients: noNewNode,
		advice: "Check --zk and --cluster. If its nodes have served before, ZooKeeper has lost data: create nothing, and " +
			"see docs/troubleshooting.md. Otherwise `flaked cluster init` with the same --zk and --cluster creates it.",
	})
	rowZooKeeperDenied = declare(row{cause: "zookeeper-denied", severity: Critical,
		text:    "ZooKeeper denied access",
		clients: noNewNode,
		advice:  "Give --zk-auth-file with the user that created the records.",
	})
	rowOtherCluster = declare(row{cause: "other-cluster", severity: Critical,
		text:    "The state directory belongs to another cluster",
		clients: otherNodes,
		advice:  "Give this cluster its own --state-dir, or correct --zk and --cluster.",
	})

	rowNotFromHere = declare(row{cause: "zookeeper-elsewhere", severity: Warning,
		text: "ZooKeeper cannot be reached from here, but a node can " +
			"reach it",
		clients: unnoticed,
		advice:  "Check --zk (FLAKED_ZK) and the network.",
	})
	rowDenied = declare(row{cause: "access-denied", severity: Warning,
		text:    "The node denied access%s",
		clients: unnoticed,
		advice:  "Give --token-file or --tls, as its answer says.",
	})
	rowReplaced = declare(row{cause: "replaced", severity: Warning,
		text:    "The node is not connected, and another node answers at its address%s",
		clients: unnoticed,
		advice: "Start the old node again, at another address. If it or its disk is gone for good, wait until its lease " +
			"expires, or release its worker with `flaked workers release`.",
	})
	rowNotShown = declare(row{cause: "not-live-yet", severity: Warning,
		text:    "ZooKeeper does not show the node as live yet, but the node reaches it",
		clients: unnoticed,
		advice:  "Wait for the next heartbeat. If this lasts, the log of the node says why.",
	})
	rowNoAnswer = declare(row{cause: "no-answer", severity: Warning,
		text:    "The node is live in ZooKeeper, but does not answer at its address%s",
		clients: "Clients notice nothing, unless the process was killed or hangs.",
		advice:  "If its process does not run, start it. Else check its log, and the network to the address.",
	})
	rowAnotherNode = declare(row{cause: "another-node", severity: Warning,
		text:    "Another node answers at the address of the node%s",
		clients: unnoticed,
		advice:  "Give each node a --listen and --advertise address of its own.",
	})
	rowNoRecord = declare(row{cause: "record-missing", severity: Warning,
		text:    "ZooKeeper has no readable record of the worker",
		clients: unnoticed,
		advice:  "If its holder has stopped, start it with its state directory: a holder restores the record.",
	})
	rowFromCache = declare(row{cause: node.TroubleFromCache, severity: Warning,
		text:        "The node runs only from its state directory: ZooKeeper has no record of this start yet",
		cannotRenew: true,
		advice:      "Restore its connection to ZooKeeper.",
	})
	rowClockOffset = declare(row{cause: node.TroubleOffset, severity: Warning,
		text:    "The clock is more than 500 ms off%s",
		clients: beyond5s,
		advice:  checkClock,
	})
	rowLeaderClock = declare(row{cause: "leader-clock", severity: Warning,
		text:    "Most clocks are more than 500 ms off that of ZooKeeper's leader",
		clients: beyond5s,
		advice:  "Check the clock of ZooKeeper's leader first.",
	})
	_ = declare(row{cause: node.TroubleLeap, severity: Warning,
		text:    "The machine's clock leapt%s ahead, unconfirmed by ZooKeeper and peers. IDs do not follow the leap",
		clients: unnoticed,
		advice: "Check its time synchronisation (chronyc tracking). Up to 5 s, let it slew the clock back, else step it: " +
			"IDs have not followed.",
	})
	_ = declare(row{cause: node.TroubleCoasting, severity: Warning,
		text:    "The machine's clock went back%s, and the node coasts: IDs continue from the monotonic clock",
		clients: unnoticed,
		advice:  checkClock,
	})
	rowClockSuspect = declare(row{cause: "clock-suspect", severity: Warning,
		text:    "The newest report is%s old by this machine's clock",
		clients: unnoticed,
		advice:  "Either this clock is ahead, or no live node reports. After an outage of ZooKeeper, wait for heartbeats.",
	})
	rowUnread = declare(row{cause: "unread", severity: Warning,
		text:    "The cluster could not be read from ZooKeeper%s",
		clients: unnoticed,
		advice:  "Check whether ZooKeeper is slow or down.",
	})
	rowRegistrationFrozen = declare(row{cause: node.TroubleFrozen, severity: Warning,
		text:    "Registration is frozen%s, because ZooKeeper lost data",
		clients: noNewNode,
		advice: "Start the missing nodes again with their state directories, and wait. Ending the freeze early can repeat " +
			"IDs: see flaked cluster thaw --help.",
	})
	rowFrozenByOperator = declare(row{cause: "frozen-by-operator", severity: Warning,
		text:    "Registration is frozen%s",
		clients: noNewNode,
		advice:  "Wait, or ask the operator whether flaked cluster thaw may end it early.",
	})
	rowFewFree = declare(row{cause: "few-free", severity: Warning,
		text:    "Fewer than 5 % of the workers are free%s",
		clients: "Clients notice nothing, but soon no new node can start.",
		advice:  "Wait for leases to expire, and give nodes that come and go --release-on-exit.",
	})
	rowSequencesCeiling = declare(row{cause: "sequences-ceiling", severity: Warning,
		text:    "Sequences at their ceiling%s",
		clients: "Clients get fewer values than they ask for.",
		advice: "Raise the ceiling, up to the hard one (flaked seq set 'NAME' --ceiling N), or find the client that asks " +
			"for so many.",

		onlyNodesSay: true,
	})
	rowSequencesOwnerGone = declare(row{cause: "sequences-owner-gone", severity: Warning,
		text:    "Ordered sequences whose owner has not renewed its lease%s",
		clients: "Requests for these wait until another node takes over: 3 s by default.",
		advice:  "Ask for a value (flaked seq next). If that fails, the error says why.",
		adds:    addOwner,
	})
	rowSequencesNearlyUsed = declare(row{cause: "sequences-nearly-used", severity: Warning,
		text:    "Sequences used to 80 % or more%s",
		clients: "Clients notice nothing until a sequence is exhausted.",
		advice:  raiseMax,
		adds:    addUsed,
	})
	rowSequencesUnread = declare(row{cause: "sequences-unread", severity: Warning,
		text:    "The named sequences could not be read from ZooKeeper%s",
		clients: unnoticed,
		advice:  "Check ZooKeeper (flaked doctor), then see flaked seq list.",
	})
	rowTimeEnding = declare(row{cause: "time-field-ending", severity: Warning,
		text:    "The layout's time field ends%s",
		clients: "Clients notice nothing until then. Then they get no IDs.",
		advice:  "Plan a cluster with another layout: flaked layout --help.",
	})
)

// AdviceDisk is that of the cause state-directory, for a directory that is there.
const AdviceDisk = "Free space on its disk, make it writable again, or repair it."

// The advice of problems that doctor and the commands find by themselves, and describe in their own words.
var (
	AdviceZooKeeperDown      = rowZooKeeperDown.advice
	AdviceZooKeeperDenied    = rowZooKeeperDenied.advice
	AdviceQuota              = rowQuota.advice
	AdviceLocalSessions      = rowLocalSessions.advice
	AdviceNoCluster          = rowNoCluster.advice
	AdviceClusterDamaged     = rowClusterDamaged.advice
	AdviceOtherCluster       = rowOtherCluster.advice
	AdviceRegistrationFrozen = rowRegistrationFrozen.advice
	AdviceFrozenByOperator   = rowFrozenByOperator.advice
	AdviceClockOffset        = rowClockOffset.advice
	AdviceLeaderClock        = rowLeaderClock.advice
	AdviceFewFree            = rowFewFree.advice
	AdviceTimeEnding         = rowTimeEnding.advice
)

// DevelopmentProblem is the problem of a development node.
var DevelopmentProblem = rowDevelopment.problem("")

// UnreadProblem returns the problem that the cluster could not be read. since tells when it was last read, for example
// " since 10:31:36 UTC". It is "" if the cluster was never read.
func UnreadProblem(since string) Problem { return rowUnread.problem(since) }

// ProblemOf returns the problem of a cause, without details. A node of another release may have a cause that is not in
// the table. ProblemOf then returns a problem that refers to the log.
func ProblemOf(word string) Problem { return rowOf(word).problem("") }

func rowOf(word string) row {
	if Known(word) {
		return table[place(word)]
	}
	return row{cause: word, severity: Critical,
		text:    "The reply to READY and the log say why",
		clients: otherNodes,
		advice:  "See docs/troubleshooting.md.",
	}
}

// Known reports whether the table has a row of this cause.
func Known(word string) bool { return place(word) < len(table) }

// place returns the index of the row of a cause. A cause that is not in the table comes after all rows.
func place(word string) int {
	if i := slices.IndexFunc(table, func(r row) bool { return r.cause == word }); i >= 0 {
		return i
	}
	return len(table)
}

// isRefusal reports whether a node with this problem is not ready: the problem is a row of refusals, or a cause of
// another release.
func (p Problem) isRefusal() bool {
	return !Known(p.Cause) || slices.ContainsFunc(refusals, func(r row) bool { return r.cause == p.Cause })
}

// WorstFirst sorts problems: the critical ones first, then by their rows in the table. It never returns nil, so that
// JSON has a list.
func WorstFirst(found []Problem) []Problem {
	sorted := append([]Problem{}, found...)
	slices.SortStableFunc(sorted, func(a, b Problem) int { // "critical" is before "warning"
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), place(a.Cause)-place(b.Cause))
	})
	return sorted
}
