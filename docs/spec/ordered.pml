/* How one node at a time owns an ordered sequence, so that its values rise over all nodes: see docs/testing.md.
 * The numbers are those of docs/design.md. WITHOUT=O3 takes the rule O3 out. */
#define O2       1  /* the owner counts on nine tenths of the lease, from when it sent its last write */
#define O2_CLOCK 2  /* and reads the clock after it has received the request */
#define O3       3  /* a write with unknown outcome ends the ownership */
#define O4       4  /* another node takes over when it has seen the record unchanged for the lease */
#define O5       5  /* a renewal that is acknowledged after the lease has ended ends the ownership */
#define O6       6  /* an owner issues nothing more before it writes that there is no owner */
#define O8       7  /* after a loss of data the next owner waits for the lease, also if the record has no owner */
/* Not rules: WITHOUT=RECOVERY shows a run in which the event happens. */
#define TAKEOVER 90  /* another node takes over, and issues */
#define RECOVERY 91  /* a node takes over after a loss of data, and issues */
#define rule(r) (WITHOUT != r)
#define WRITES 4    /* the most writes of the record */
#define LEASE 3     /* another node waits for so long by its own clock */
#define OWN (rule(O2) -> 2 : LEASE)  /* the owner counts on less */
#define DRIFT 1     /* by which its clock may be fast in that time */
byte now;
byte top;           /* the ownership under which the highest value was issued */
byte writes = 1;
bit lost;           /* ZooKeeper has lost data, and no peer has noticed */
bit copied, gone;   /* a copy of the data was made; they were lost */
/* The owner is the number of the write that took the sequence over, 0 for none. The blocks of a later ownership lie
 * above those of an earlier one (rules S2 and S13), so the order of values is the order of these numbers. */
typedef Record { byte owner, write, inc };
Record r, r0;
byte c, c0;         /* the incarnation */
typedef Node {
  byte own, until;  /* its ownership and when that ends */
  bit ready;        /* without O2_CLOCK: it has read the clock for the next request */
  byte seen, seenInc, since;  /* the record that it watches */
  byte sent, over   /* 1 + when it has sent a renewal, over which write; 0: none is under way */
};
Node node[2];
#define n node[_pid]
active [2] proctype Owner() {
  do
  :: d_step { n.own && (now < n.until || n.ready) ->
       printf("| node %d issues a value as owner %d\n", _pid, n.own); assert(n.own >= top);
       assert(rule(TAKEOVER) || top == 0 || n.own == top);
       assert(rule(RECOVERY) || n.own != r.owner || r.inc == 0); top = n.own; n.ready = 0 }
  :: d_step { !rule(O2_CLOCK) && n.own && now < n.until && !n.ready -> n.ready = 1;
       printf("| node %d reads the clock\n", _pid) }
  /* The record is renewed. The write is sent, and arrives later or never. */
  :: d_step { n.own && !n.sent && writes < WRITES && (r.owner == n.own && r.inc == c) ->
       n.sent = now + 1; n.over = r.write; printf("| node %d sends a renewal\n", _pid) }
  :: d_step { n.sent && r.write == n.over && writes < WRITES -> writes++; r.write = writes; r.owner = n.own;
       if :: now >= n.until && rule(O5) -> n.own = 0; n.ready = 0 :: else -> n.until = n.sent - 1 + OWN fi;
       n.sent = 0; n.over = 0; printf("| node %d hears that its renewal has succeeded\n", _pid) }
  :: d_step { n.sent && r.write == n.over && writes < WRITES -> writes++; r.write = writes; r.owner = n.own;
       if :: rule(O3) -> n.own = 0; n.ready = 0 :: else -> n.until = n.sent - 1 + OWN fi;
       n.sent = 0; n.over = 0; printf("| the renewal of node %d succeeds, but the answer is lost\n", _pid) }
  :: d_step { n.sent -> if :: rule(O3) -> n.own = 0; n.ready = 0 :: else -> n.until = n.sent - 1 + OWN fi;
       n.sent = 0; n.over = 0; printf("| the renewal of node %d is lost\n", _pid) }
  :: d_step { n.own && !n.sent && (now >= n.until || r.owner != n.own || r.inc != c) ->
       n.own = 0; n.ready = 0; printf("| node %d ends its ownership\n", _pid) }
  :: d_step { n.own && !n.sent && writes < WRITES && r.owner == n.own && r.inc == c ->
       writes++; r.write = writes; r.owner = 0; if :: rule(O6) -> n.own = 0; n.ready = 0 :: else fi;
       printf("| node %d gives the sequence back\n", _pid) }
  :: d_step { n.seen != r.write || n.seenInc != c -> n.seen = r.write; n.seenInc = c; n.since = now;
       printf("| node %d reads the record: owner %d\n", _pid, r.owner) }
  :: d_step { !n.own && !lost && writes < WRITES && n.seen == r.write && n.seenInc == c &&
       (!r.owner && (r.inc == c || !rule(O8)) || now + DRIFT - n.since >= LEASE || !rule(O4)) ->
       writes++; r.write = writes; r.owner = writes; r.inc = c; n.own = writes; n.until = now + OWN;
       printf("| node %d takes the sequence over, as owner %d\n", _pid, n.own) }
  od
}
init {
  r.write = 1;
  do
  :: d_step { now < END && !lost -> now++; printf("| time is %d\n", now) }
  :: d_step { !gone && !copied -> copied = 1; r0.owner = r.owner; r0.write = r.write; r0.inc = r.inc; c0 = c;
       printf("| a copy of the data is made\n") }
  :: d_step { !gone && copied -> gone = 1; lost = 1;
       r.owner = r0.owner; r.write = r0.write; r.inc = r0.inc; c = c0;
       printf("| ZooKeeper loses data: owner %d\n", r.owner) }
  :: d_step { lost -> lost = 0; c++; printf("| a peer finds the loss of data: incarnation %d\n", c) }
  od
}
