/* How nodes of flaked hold one worker, and why no ID of it is issued twice: see docs/testing.md.
 * The numbers are those of docs/design.md. WITHOUT=C8 takes the rule C8 out. */
#define C1   1  /* issue only below the lease bound */
#define C2   2  /* the floor is at or above the lease bound of the holder before */
#define C3   3  /* the lease bound in ZooKeeper never goes down */
#define C4   4  /* a raise of the lease bound counts once it is acknowledged */
#define C5   5  /* the reserved bound is on the disk before an ID below it is issued */
#define C6   6  /* a restart begins at the reserved bound */
#define C7   7  /* a worker is free when its lease bound has passed by two clocks, and the grace */
#define C8   8  /* a worker is acquired by a versioned write */
#define C10  9  /* a new holder waits for the confirming time */
#define C12 10  /* a loss of data is noticed within the confirming time */
#define C13 11  /* a heartbeat is a versioned write */
#define C15 12  /* a restart goes on only if the record has its nonce */
#define C16 13  /* a start without ZooKeeper needs a lease that runs */
#define C19 14  /* a heartbeat that finds the record of another node ends the tenure */
#define C21 15  /* registration is frozen after a loss of data */
#define C23 16  /* the freeze lasts until the horizon */
#define C24 17  /* only a holder that has confirmed, and whose lease runs, puts its record back */
#define C26 18  /* a lease that has ended by the clock of ZooKeeper's leader has ended, and is confirmed anew */
#define C29 19  /* a stop makes the directory invalid before it releases the worker */
#define C30 20  /* an operator's release does not lower the lease bound */
/* Not rules: WITHOUT=TAKEOVER shows a run in which the event happens. */
#define TAKEOVER     90  /* another node takes the worker over, and issues */
#define RECOVERY     91  /* after a loss of data the holder puts its record back, and issues */
#define rule(r) (WITHOUT != r)
/* SKEW: a node's clock is ahead by so much at some readings, and right at others. */
#define LEASE 3
#define CONFIRM 1
#define FREEZE (LEASE + SKEW * rule(C23))  /* Cluster.FreezeEnd in package coordinator */
#define max(a, b) (((a) > (b)) -> (a) : (b))
#define min(a, b) (((a) < (b)) -> (a) : (b))
mtype = { off, alone, seeking, confirming, holding };
mtype = { none, acquire, heartbeat };

/* Two IDs are equal if they have the same time, so the model watches one timestamp, x, which may be any. A floor and a
 * reserved bound count only as far as they are above x or not. */
byte x;
bit used, top;        /* an ID with the timestamp x was issued; a tenure was confirmed whose floor is above x */

byte now;             /* true time, which the clock of ZooKeeper's leader shows */
bit lost;             /* ZooKeeper has lost data, and no peer has noticed. known: the incarnation before that */
byte known, losses, copies, kills, nonces = 1;
typedef Record { byte nonce, term, lease, inc; bit confirmed, released };  /* of the worker */
typedef Cluster { byte inc, frozen };    /* its incarnation, and until when registration is frozen */
Record z, z0;         /* in ZooKeeper, and in the copy that a loss of data brings back */
Cluster c, c0;
typedef Node {
  mtype st = off;
  byte nonce, pending, term, lease, inc;  /* in its directory. The lease bound is 0 until it has confirmed */
  bit ever;           /* it has confirmed */
  bit above;          /* the floor is above x */
  bit disk;           /* the reserved bound is above x */
  bit mine;           /* it has issued x */
  byte bound;         /* the lease bound of its last acknowledged write */
  byte wait;          /* until when it waits before it confirms. 255: from the acknowledgement on */
  bit doubt;          /* the lease had ended by the leader's clock */
  mtype req = none;   /* the write that is under way: over which record it was planned, and the new one */
  byte rnonce, rold, rlease, rinc;
  bit rwas, rconf
};
Node node[2];
#define n node[i]
#define clock (now + ahead)
#define leader now
#define closed (rule(C21) && min(clock, leader) < c.frozen)
#define leased (n.ever && clock < n.lease)
#define running (n.st == alone || n.st == confirming || n.st == holding)
#define idle (n.req == none)
/* What the record that a node finds is: its own, one that fences it, or a loss of data (C19). */
#define ours (z.nonce != 0 && (z.nonce == n.nonce || z.nonce == n.pending))
#define fences (rule(C19) && !ours && (z.inc > n.inc && z.confirmed || z.inc == n.inc && \
  (z.term > n.term || z.term == n.term && z.confirmed)))
#define looksours (ours || !rule(C19))
#define older (c.inc < n.inc || z.lease < n.lease)
#define loss (!looksours && (!fences || !z.confirmed && z.inc == n.inc) || ours && older)
/* The versioned write succeeds only over the record that was read. One that confirms or acquires needs the cluster's
 * record as it was, too (C21). */
#define confirms (n.req == heartbeat && n.rconf && n.st == confirming)
#define fits ((z.nonce == n.rnonce && z.lease == n.rold && z.confirmed == n.rwas || \
  n.req == acquire && !rule(C8) || n.req == heartbeat && !rule(C13)) && \
  (c.inc == n.rinc || n.req == heartbeat && !confirms))
inline end() { n.mine = 0; n.bound = 0; n.wait = 0; n.doubt = 0 }
inline forget() {
  n.nonce = 0; n.pending = 0; n.term = 0; n.lease = 0; n.inc = 0; n.ever = 0; n.above = 0; n.disk = 0; end() }
/* An unacknowledged grant is found in ZooKeeper by its nonce, which the directory has (C9). */
inline adopt() {
  if :: z.nonce == n.pending && n.pending -> n.nonce = n.pending; n.term = z.term; n.pending = 0  :: else fi }
inline raised() { n.rlease = (rule(C3) -> max(max(z.lease, n.lease), clock + LEASE) : clock + LEASE) }
inline send(Kind, Conf) {
  n.req = Kind; n.rnonce = z.nonce; n.rold = z.lease; n.rwas = z.confirmed; n.rinc = c.inc; n.rconf = Conf; raised() }
inline done() { n.req = none; n.rnonce = 0; n.rold = 0; n.rwas = 0; n.rinc = 0; n.rconf = 0; n.rlease = 0 }
/* The incarnation grows, unless it has (C20), and registration is frozen. */
inline raise(Knew, Clock) {
  if :: c.inc <= Knew -> c.inc = Knew + 1 :: else fi;
  if :: c.frozen < Clock + FREEZE -> c.frozen = Clock + FREEZE :: else fi
}
inline recall() { n.above = (rule(C6) -> n.above || n.disk : x < clock) }  /* the directory's claim */
/* The node writes a new grant over the record found: a higher term, and a fresh nonce. */
inline put(Conf) {
  nonces++; raised(); n.term = max(n.term, z.term) + 1; n.nonce = nonces; n.pending = 0; n.inc = c.inc;
  z.nonce = nonces; z.term = n.term; z.lease = n.rlease; n.bound = n.rlease; z.inc = c.inc;
  z.confirmed = Conf; z.released = 0; n.rlease = 0
}
/* A restart. If the record is confirmed and the lease runs, the next heartbeat confirms. Else the node waits. */
inline nextterm() {
  late = rule(C26) && leader >= (n.ever -> n.lease : z.lease); conf = z.confirmed && leased;
  put(conf); n.st = confirming; n.doubt = late; n.wait = (conf && !late -> 0 : now + CONFIRM);
  late = 0; conf = 0
}
/* A heartbeat or a new holder's record arrives. late: the lease had ended by the leader's clock. */
inline apply() {
  late = rule(C26) && n.req == heartbeat && leader >= n.bound;
  z.term = (n.req == acquire -> z.term + 1 : n.term); z.nonce = (n.req == acquire -> n.pending : n.nonce);
  z.lease = n.rlease; z.inc = n.rinc; z.confirmed = n.rconf; z.released = 0
}

/* Node i when it reads its clock ahead of true time. Each d_step is one step, which no other interrupts. */
proctype Holder(byte i; byte ahead) {
  bit conf, lapsed, late;
  do
  :: d_step { n.st != off && kills < KILLS -> kills++; n.st = off; end(); done(); printf("| node %d is killed\n", i) }
  /* C1. The timestamp may be far below the clock: a process may stand still after it has read the clock. */
  :: d_step { running && n.ever && !n.mine && x <= clock && !n.above && (x < n.lease || !rule(C1)) ->
       printf("| node %d issues an ID with the timestamp %d, clock %d\n", i, x, clock);
       assert(!used); assert(rule(TAKEOVER) || i == 0 || losses);
       assert(rule(RECOVERY) || i == 1 || n.inc == 0 || n.st != holding);
       used = 1; n.mine = 1; if :: rule(C5) -> n.disk = 1 :: else fi }
  /* A process starts from its directory. */
  :: d_step { n.st == off && (ours && !z.released || !rule(C15)) && nonces < GRANTS ->
       if :: older -> raise(n.inc, clock) :: else fi;
       adopt(); recall(); nextterm(); printf("| node %d starts, and finds its record\n", i) }
  :: d_step { n.st == off && (!ours || z.released) && !(loss && leased) -> forget(); n.st = seeking;
       printf("| node %d starts as a new node\n", i) }
  :: d_step { n.st == off && n.ever && (leased || !rule(C16)) ->
       recall(); n.st = alone; if :: !rule(C16) -> n.lease = clock + LEASE :: else fi;
       printf("| node %d starts from its directory alone\n", i) }
  /* A new node asks for the worker when it is free. */
  :: d_step { n.st == seeking && idle && nonces < GRANTS && !closed && !(ours && n.pending) &&
       (z.released || z.lease <= (rule(C7) -> min(clock, leader) : clock)) -> forget();
       n.above = x < (rule(C2) -> max(clock, z.lease) : clock); nonces++; n.pending = nonces; send(acquire, 0);
       printf("| node %d asks for the worker, clock %d, lease bound %d\n", i, clock, z.lease) }
  :: d_step { n.st == seeking && idle && ours && n.pending && !z.released && nonces < GRANTS -> adopt(); nextterm();
       printf("| node %d finds the record of its own write\n", i) }
  /* A heartbeat reads the record, and does what that requires. */
  :: d_step { running && idle && fences -> forget(); n.st = seeking; printf("| node %d is fenced\n", i) }
  :: d_step { n.st == alone && idle && looksours && !(ours && older) && nonces < GRANTS -> adopt(); nextterm();
       printf("| node %d reports its restart\n", i) }
  :: d_step { running && idle && loss && nonces < GRANTS -> raise(n.inc, clock);
       if :: rule(C24) && (!leased || rule(C26) && (n.doubt || leader >= n.lease)) ->
            forget(); n.st = seeking; printf("| node %d finds a loss of data, and gives the worker up\n", i)
       :: else -> printf("| node %d finds a loss of data, and puts its record back\n", i);
            put(1); n.lease = z.lease; n.wait = 0; n.st = holding
       fi }
  :: d_step { (n.st == confirming || n.st == holding) && idle && looksours && !(ours && older) ->
       lapsed = rule(C26) && clock >= z.lease || z.confirmed && now < n.wait;
       conf = !lapsed && (z.confirmed || n.st == confirming && (now >= n.wait || !rule(C10)) &&
         (!closed || leased && !n.doubt)); if
       :: !n.ever && closed -> forget(); n.st = seeking; printf("| node %d gives the worker up in the freeze\n", i)
       :: else -> if :: clock + LEASE > z.lease || clock + LEASE != n.lease && !rule(C3) ||
                  conf != z.confirmed || conf && (n.st == confirming || z.lease > n.lease) ->
                 adopt(); send(heartbeat, conf); if :: lapsed -> n.wait = 255 :: else fi;
                 if :: !rule(C4) && conf -> n.lease = n.rlease :: else fi;
                 printf("| node %d sends a heartbeat: lease bound %d, confirmed %d\n", i, n.rlease, conf)
               :: else fi
       fi; conf = 0; lapsed = 0 }
  /* A clean stop makes the reserved bound the exact end. With --release-on-exit it also releases the worker. */
  :: d_step { n.st == holding && kills < KILLS -> kills++; n.disk = n.mine || n.above; end(); done(); n.st = off;
       printf("| node %d stops\n", i) }
  :: d_step { n.st == holding && idle && kills < KILLS && ours && !older -> kills++;
       z.nonce = 0; z.released = 1; z.confirmed = 0; z.lease = (n.mine || n.above -> x + 1 : 0);
       if :: rule(C29) -> forget() :: else -> end() fi;
       n.st = off; printf("| node %d stops, and releases the worker with the lease bound %d\n", i, z.lease) }
  /* A write that was sent fails or succeeds, and then the answer arrives or is lost. */
  :: d_step { !idle -> done(); printf("| the write of node %d does not reach ZooKeeper, or a record has changed\n", i) }
  :: d_step { !idle && fits ->
       apply(); late = 0; done(); printf("| the write of node %d succeeds, but the answer is lost\n", i) }
  :: d_step { !idle && fits ->
       apply(); n.inc = n.rinc;
       printf("| the write of node %d succeeds: lease bound %d, term %d\n", i, z.lease, z.term);
       if
       :: n.req == acquire -> n.st = confirming; n.wait = now + CONFIRM;
            n.nonce = n.pending; n.pending = 0; n.term = z.term; n.bound = n.rlease
       :: n.req == heartbeat && late -> n.doubt = 1; n.wait = now + CONFIRM;
            if :: !n.rconf -> n.st = confirming; n.bound = n.rlease :: else fi
       :: n.req == heartbeat && !late && n.rconf -> if :: !leased -> n.above = n.above || x < clock :: else fi;
            if :: n.st == confirming && top && !n.above -> printf("| an earlier floor was higher\n"); assert(0)
               :: n.st == confirming && (!top || n.above) -> top = n.above :: else fi;  /* floors rise */
            n.lease = n.rlease; n.bound = n.rlease; n.ever = 1; n.wait = 0; n.doubt = 0; n.st = holding
       :: n.req == heartbeat && !late && !n.rconf -> n.st = confirming; n.bound = n.rlease;
            if :: n.wait == 255 -> n.wait = now + CONFIRM :: else fi
       fi; late = 0; done() }
  od
}

init {
  atomic {
    z.nonce = 1; z.term = 1; z.lease = 1; z.confirmed = 1;
    node[0].st = holding; node[0].nonce = 1; node[0].term = 1; node[0].lease = 1; node[0].bound = 1; node[0].ever = 1;
    node[1].st = seeking;
    run Holder(0, 0); run Holder(0, SKEW); run Holder(1, 0); run Holder(1, SKEW);
    if :: x = 1 :: x = 2 :: x = 3 :: x = 4 fi
  }
  do
  :: d_step { now < END && (!lost || !rule(C12)) -> now++; printf("| time is %d\n", now) }
  :: d_step { lost && rule(C12) -> raise(known, now); lost = 0;
       printf("| a peer notices the loss: no registration before %d\n", c.frozen) }
  :: d_step { kills < KILLS && z.nonce && (c.frozen <= now || !rule(C21)) -> kills++;
       z.nonce = 0; z.term++; z.confirmed = 0;
       if :: !rule(C30) -> z.lease = min(z.lease, now) :: else fi; printf("| an operator releases the worker\n") }
  :: d_step { losses == 0 && copies < LOSSES -> copies++;
       z0.nonce = z.nonce; z0.term = z.term; z0.lease = z.lease; z0.inc = z.inc; z0.confirmed = z.confirmed;
       z0.released = z.released; c0.inc = c.inc; c0.frozen = c.frozen; printf("| a copy of the data is made\n") }
  :: d_step { losses < LOSSES -> losses++; lost = 1; known = c.inc;
       z.nonce = z0.nonce; z.term = z0.term; z.lease = z0.lease; z.inc = z0.inc; z.confirmed = z0.confirmed;
       z.released = z0.released; c.inc = c0.inc; c.frozen = c0.frozen;
       printf("| ZooKeeper loses data: lease bound %d, term %d\n", z.lease, z.term) }
  od
}
