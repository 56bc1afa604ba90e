package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/harness"
)

// flakedSeq runs `flaked seq` with ZooKeeper's address. It fails if ZooKeeper is away for 30 s.
func (c *campaign) flakedSeq(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	args = slices.Concat([]string{"seq"}, args, []string{"--zk", c.site.Connect}, c.secure)
	out, err := exec.CommandContext(ctx, c.binary, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("flaked %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// createSequence creates a sequence. If ZooKeeper has lost data, the sequence gets a start far above all
// values that nodes have issued or hold.
func (c *campaign) createSequence(kind int) error {
	k := sequenceKinds[kind]
	c.site.Values.Made(k.name, k.mode)
	args := []string{"create", k.name}
	for flag, value := range map[string]int64{"--ceiling": k.ceiling, "--sections": int64(k.sections)} {
		if value > 0 {
			args = append(args, flag, fmt.Sprint(value))
		}
	}
	if k.mode != "" {
		args = append(args, "--mode", k.mode)
	}
	if k.increment > 1 {
		args = append(args, "--increment", fmt.Sprint(k.increment))
	}
	if k.start > 1 { // such a sequence is created once, before any loss
		args = append(args, "--start", fmt.Sprint(k.start))
	}
	err := c.flakedSeq(args...)
	if err != nil && strings.Contains(err.Error(), "needs a start") {
		err = c.flakedSeq(append(args, "--start", fmt.Sprint(c.site.Values.Highest(k.name)+100_000_000))...)
	}
	return err
}

// prepareSequences creates the sequences, once a node has made the record that they share.
func (c *campaign) prepareSequences() {
	for kind := range sequenceKinds {
		var err error
		if !harness.Waits(c.t.Context(), 30*time.Second, func() bool { err = c.createSequence(kind); return err == nil }) {
			c.t.Fatal(err)
		}
	}
}

// operate plays an operator until ctx ends. Neither skip nor ceiling covers what a loss of data undoes of an
// operator's work (S29), so ZooKeeper loses none until all nodes that are connected have
// followed.
func (c *campaign) operate(ctx context.Context) {
	rng := rand.New(rand.NewPCG(*chaosSeed, 400))
	for ctx.Err() == nil {
		harness.Pass(ctx, time.Second+time.Duration(rng.IntN(8000))*time.Millisecond)
		if touches(c.recentLosses(), c.now(), c.now()) {
			continue
		}
		c.calm.RLock()
		err := errors.Join(c.vouch(), c.command(ctx, rng))
		if err != nil {
			c.note("operator", "%v", err)
		} else {
			c.seq.done++
		}
		c.awaitFollowers()
		c.calm.RUnlock()
	}
}

// vouch says where the strict sequence goes on if it is frozen: above all numbers that a node can have committed.
func (c *campaign) vouch() error {
	name := sequenceKinds[strictKind].name
	var frozen bool
	var incarnation int64
	err := c.withZooKeeper(func(ctx context.Context, zk *store.ZK) error {
		r, st, err := operator.Commands{Store: zk}.Find(ctx, name)
		frozen, incarnation = r.Incarnation < st.Incarnation, st.Incarnation
		return err
	})
	if err == nil && frozen {
		next := c.site.Values.Highest(name) + 1_000_000
		c.note("operator", "%s goes on at %d", name, next)
		c.site.Values.Jump(next) // also if the command has an unknown outcome
		c.seq.keys.Add(staleKey) // the nodes may have lost the keys
		err = c.flakedSeq("set", name, "--next", fmt.Sprint(next), "--vouch-after-loss", "--confirm",
			fmt.Sprintf("%s is unused from %d on in incarnation %d", name, next, incarnation))
	}
	if err == nil {
		c.seq.vouched = append(c.seq.vouched, c.now())
	}
	return err
}

// recentLosses returns the windows in which nodes may not have noticed yet that ZooKeeper has lost data, or may
// not have put back what they know better. An operator must not act then.
func (c *campaign) recentLosses() []window {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lossWindows()
}

// command does one thing that an operator may do, drawn at random.
func (c *campaign) command(ctx context.Context, rng *rand.Rand) error {
	life := sequenceKinds[lifeKind].name
	switch rng.IntN(4) {
	case 0:
		k := sequenceKinds[rng.IntN(len(sequenceKinds))]
		if k.mode != "" {
			return nil // it has no such setting
		}
		name := k.name
		block := fmt.Sprint(32 + rng.IntN(600))
		c.note("operator", "block of %s is %s", name, block)
		return c.flakedSeq("set", name, "--block", block)
	case 1:
		next, err := c.nextOf(life)
		if err != nil {
			return err
		}
		next += rng.Int64N(1_000_000)
		c.note("operator", "next of %s is %d", life, next)
		return c.flakedSeq("set", life, "--next", fmt.Sprint(next), "--confirm",
			fmt.Sprintf("skip values of %s below %d", life, next))
	}
	from := c.now()
	c.mu.Lock()
	if n := len(c.seq.gone); n == 0 || c.seq.gone[n-1].to != 0 {
		c.seq.gone = append(c.seq.gone, window{from: from})
	}
	c.mu.Unlock()
	c.note("operator", "%s is deleted, and created again", life)
	err := c.flakedSeq("delete", life, "--confirm", "delete sequence "+life)
	if rng.IntN(2) == 0 {
		harness.Pass(ctx, time.Duration(rng.IntN(3000))*time.Millisecond)
	}
	if created := c.createSequence(lifeKind); created != nil && !strings.Contains(created.Error(), "exists already") {
		return errors.Join(err, created)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq.gone[len(c.seq.gone)-1].to = c.now() + int64(absentFor)
	return nil
}

// absentFor is how long a node may believe that a sequence does not exist, and a heartbeat.
const absentFor = 2*time.Second + slowest

func (c *campaign) nextOf(name string) (next int64, err error) {
	err = c.withZooKeeper(func(ctx context.Context, zk *store.ZK) error {
		r, _, err := operator.Commands{Store: zk}.Find(ctx, name)
		if err == nil && r.DeletedAt != 0 {
			err = operator.ErrNotFound
		}
		next = r.Value(r.Next)
		return err
	})
	return next, err
}

// awaitFollowers blocks until all nodes that run report that they have followed the operator.
func (c *campaign) awaitFollowers() {
	var last error
	ok := harness.Waits(c.t.Context(), healthyWithin(), func() bool {
		last = c.withZooKeeper(func(ctx context.Context, zk *store.ZK) error {
			_, st, err := operator.Commands{Store: zk}.Find(ctx, "none")
			if err != nil && !errors.Is(err, operator.ErrNotFound) {
				return err
			}
			now := func() int64 { return time.Now().UnixMilli() }
			all, err := coordinator.Operator{Store: zk, Now: now}.Roster(ctx)
			at := coordinator.Change{Number: st.Changes, Incarnation: st.Incarnation}
			for _, b := range all.NotFollowed(at) {
				return fmt.Errorf("worker %d has followed %+v, not %+v", b.Worker, b.Slot.Followed, at)
			}
			return err
		})
		return last == nil
	})
	if !ok && c.t.Context().Err() == nil {
		c.violated("operator", "%s after a command not all nodes have followed: %v", healthyWithin(), last)
	}
}
