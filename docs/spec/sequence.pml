/* How nodes of flaked share a named sequence in segment mode, and why no value is issued twice: see docs/testing.md.
 * The numbers are those of docs/design.md. WITHOUT=S2 takes the rule S2 out. */
#define S2   1  /* a block is taken by a write that fails if the record has changed */
#define S5   2  /* a node issues only for the hold after it has last read the record */
#define S6   3  /* all nodes together take no more than the ceiling allows */
#define S7   4  /* a node that finds a loss of data raises the incarnation */
#define S9   6  /* nobody takes positions for the confirming time after the incarnation has grown */
#define S10  7  /* a block is taken only while the slot is as the node's last heartbeat has left it */
#define S12  8  /* in a new session a node waits for the word of its peers */
#define S13  9  /* the first block of an incarnation skips what may have been taken since the record was written */
#define S14 10  /* and is small, and must be paid for */
#define S17 11  /* a name that is created again goes on above its earlier lives */
#define S18 12  /* a deleted name is forgotten only after the longest hold */
/* Not rules: WITHOUT=RECOVERY shows a run in which the event happens. */
#define RECOVERY 90  /* a node takes positions after a loss of data, and issues */
#define NEW_LIFE 91  /* the name is created again, and a node issues */
#define rule(r) (WITHOUT != r)
#define CONFIRM 1   /* the confirming time */
#define HOLD 2
#define BURST 1     /* the ceiling is one position a step of time, and so many at once after a pause */
mtype = { deleted, present, absent };  /* Spin counts from the last one, so a tombstone is newer */
byte now;           /* the sequence time, which rules S23 and S24 keep */
byte p;             /* the watched position: the model tells only whether it was issued */
bit used, lost;     /* it was issued; ZooKeeper has lost data, and no peer has noticed */
byte losses, copies, lossAt, known;
typedef Record { mtype kind = absent; byte life, next, at, inc, since; short credit };
Record r, r0;       /* in ZooKeeper, and in the copy of it */
byte c, c0;         /* the incarnation, in ZooKeeper's record of the cluster */
typedef Node {
  Record k;         /* the record as the node has last read or written it */
  byte inc, wait;   /* the incarnation that it has entered, and until when it waits then */
  byte read;        /* when it last read */
  bit has;          /* it holds the watched position */
  bit fresh;        /* ZooKeeper has its slot as the last heartbeat has left it */
  bit word          /* its peers have written since its session began */
};
Node node[2];
#define n node[_pid]
inline set(To, From) {
  To.kind = From.kind; To.life = From.life; To.next = From.next; To.at = From.at; To.inc = From.inc;
  To.since = From.since; To.credit = From.credit
}
#define newer(a, b) (a.inc > b.inc || a.inc == b.inc && (a.life > b.life || a.life == b.life && \
  (a.kind > b.kind || a.kind == b.kind && (a.next > b.next || a.next == b.next && a.at > b.at))))
#define same (r.kind == n.k.kind && r.life == n.k.life && r.next == n.k.next && r.at == n.k.at && r.inc == n.k.inc)
#define earned (n.k.credit + now - n.k.at)
#define maytake (n.k.kind == present && n.inc == c && (now >= n.wait || !rule(S9)) && (n.fresh || !rule(S10)) && \
  (n.word || !rule(S12)) && (same || !rule(S2)))
active [2] proctype Taker() {
  byte first, count;
  do
  :: d_step { n.has && (LOSSES > 0 || now - n.read < HOLD || !rule(S5)) ->
       printf("| node %d issues position %d\n", _pid, p); assert(!used);
       assert(rule(RECOVERY) || n.k.inc == 0); assert(rule(NEW_LIFE) || n.k.life == 0); used = 1; n.has = 0 }
  :: d_step { c == n.inc && !newer(n.k, r) && (!same || LOSSES == 0 && n.read != now) ->
       if :: r.life != n.k.life || r.kind != present -> n.has = 0 :: else fi; set(n.k, r);
       n.read = (LOSSES -> 0 : now); printf("| node %d reads the record: next position %d\n", _pid, r.next) }
  :: d_step { (c < n.inc || c == n.inc && newer(n.k, r) || !n.fresh) && rule(S7) ->
       if :: c <= n.inc -> c = n.inc + 1 :: else fi; n.fresh = 1;
       printf("| node %d finds a loss of data: incarnation %d\n", _pid, c) }
  :: d_step { c > n.inc -> n.inc = c; n.wait = now + CONFIRM; n.fresh = 1;
       if :: newer(n.k, r) -> set(r, n.k)  /* S8 */
          :: else -> if :: r.next < n.k.next -> r.next = n.k.next :: else fi; set(n.k, r) fi;
       printf("| node %d enters incarnation %d, with the next position %d\n", _pid, c, r.next) }
  :: d_step { maytake && (n.k.inc == n.inc && (earned >= 1 || !rule(S6)) || n.k.inc < n.inc && earned >= 0) ->
       first = n.k.next; count = 1; if
       :: n.k.inc == n.inc -> n.k.credit = (earned > BURST -> BURST : earned) - 1;
            if :: n.k.credit < -1 -> n.k.credit = -1 :: else fi
       :: else -> if :: rule(S13) -> first = first + earned :: else fi;
            if :: rule(S14) -> n.k.credit = -1 :: else -> count = 4; n.k.credit = 0 fi
       fi; n.k.next = first + count; n.k.at = now; n.k.inc = n.inc; set(r, n.k);
       n.has = n.has || first <= p && p < first + count;
       printf("| node %d takes the positions %d to %d\n", _pid, first, first + count - 1); first = 0; count = 0 }
  od
}
init {
  atomic {
    r.kind = present; r.credit = BURST; set(r0, r); set(node[0].k, r); set(node[1].k, r);
    node[0].fresh = 1; node[1].fresh = 1; node[0].word = 1; node[1].word = 1;
    if :: p = 0 :: p = 1 :: p = 2 :: p = 3 fi
  }
  do
  :: d_step { now < END && !lost -> now++; printf("| time is %d\n", now) }
  :: d_step { lost -> lost = 0; node[0].word = 1; node[1].word = 1;
       if :: c <= known && rule(S7) -> c = known + 1 :: else fi;
       printf("| a peer writes its slot, and finds the loss of data\n") }
  :: d_step { copies <= losses && copies < LOSSES -> copies++; set(r0, r); c0 = c;
       printf("| a copy of the data is made\n") }
  :: d_step { losses < LOSSES && !lost && (losses == 0 || now > lossAt + CONFIRM) ->
       losses++; lost = 1; lossAt = now; known = c; c = c0; set(r, r0); node[0].word = 0; node[1].word = 0;
       printf("| ZooKeeper loses data, and all sessions end: next position %d\n", r.next) }
  :: d_step { losses < LOSSES && !lost && (losses == 0 || now > lossAt + CONFIRM) ->
       losses++; lost = 1; lossAt = now; known = c; c = c0; set(r, r0);
       node[0].fresh = 0; node[1].fresh = 0;
       printf("| ZooKeeper loses data and the last heartbeats: next position %d\n", r.next) }
  :: d_step { !LOSSES && r.kind == present -> r.kind = deleted; r.since = now; printf("| the name is deleted\n") }
  :: d_step { LOSSES == 0 && r.kind == deleted && r.life < 2 -> r.kind = present; r.life++;
       if :: rule(S17) :: else -> r.next = 0 fi; printf("| the name is created again: next position %d\n", r.next) }
  :: d_step { LOSSES == 0 && r.kind == deleted && (now - r.since >= HOLD || !rule(S18)) && r.life < 2 ->
       r.kind = present; r.life++; r.next = 0; used = 0; printf("| the name is forgotten, and created anew\n") }
  od
}
