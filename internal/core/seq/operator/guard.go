package operator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// GuardTime is the longest time that a jump waits for the nodes. A jump is a change that the skip after a loss of data
// does not cover: a creation, a deletion, or a raised next value.
const GuardTime = 30 * time.Second

// NotFollowedError: not all nodes that should know a change know it.
type NotFollowedError struct {
	// Made: the change was made, and these nodes have not followed it. Else nothing was changed, and they have not
	// followed the last change of the name, or could not follow this one.
	Made bool
	// Behind are connected. Absent are not, and may come back with their leases.
	Behind, Absent []coordinator.Entry
}

func (e *NotFollowedError) Error() string {
	switch {
	case e.Made:
		return "the change was made, but not all nodes have followed it"
	case len(e.Absent) > 0:
		return "not all nodes that hold a worker are connected"
	}
	return "not all nodes have followed the last change"
}

// ErrMade: a far jump was made, and the command has ended before it knew whether all nodes have followed.
var ErrMade = errors.New("the change was made, but it is not known whether all nodes have followed it")

// guard blocks until all connected nodes have followed the last change of a name, or until GuardTime has passed (S29).
// Only a node that knows of a jump can put it back. So two jumps of a name must not follow each other unseen: ZooKeeper
// could lose both. v has the record of the name and /seq, as they were read. far: the change will be a far jump. With
// far, guard fails at once if a node is absent.
func (s Commands) guard(ctx context.Context, name string, v view, far bool) error {
	if v.Record == nil && !slices.Contains(v.State.Changed, name) {
		return nil // there is no last change
	}
	// If the last changes do not have the name, LastChange returns a later one of another name: the wait may be longer.
	at := coordinator.Change{Number: v.State.LastChange(name), Incarnation: v.Incarnation()}
	return s.await(ctx, at, far, false)
}

// await blocks until no node is late, or until GuardTime has passed. made: the operator has made the change of at.
// Before that, an absent node ends the wait with an error.
func (s Commands) await(ctx context.Context, at coordinator.Change, far, made bool) error {
	began, said := s.clock().Now(), false
	for {
		late, err := s.nodesBehind(ctx, at, far, made)
		waited := s.clock().Now().Sub(began)
		switch {
		case err != nil && (waited > GuardTime || !errors.Is(err, store.ErrUnreachable)):
			return err
		//mutant:s29-no-guard by internal/core/seq:TestJumpsWaitForConnectedNodes -> case err == nil:
		case err == nil && len(late.Behind)+len(late.Absent) == 0:
			return nil
		case err == nil && (waited > GuardTime || len(late.Absent) > 0 && !made):
			return &late
		case !said && waited > time.Second && s.OnWait != nil:
			said = true
			s.OnWait()
		}
		if err := s.clock().Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// nodesBehind returns the nodes that have not followed the changes as far as at. Of a far jump that is about to be
// made, all absent nodes are late. One that has reported shortly before may only reconnect: it counts as behind for so
// long.
func (s Commands) nodesBehind(
	ctx context.Context, at coordinator.Change, far, made bool,
) (late NotFollowedError, err error) {
	all, err := coordinator.Operator{Store: s.Store, Now: s.Now, By: s.By}.Roster(ctx)
	if err != nil {
		return late, err
	}
	late.Made, late.Behind = made, all.NotFollowed(at)
	//mutant:s34-absent by internal/core/seq:TestFarJumpsNeedAllNodes -> if !far || !made {
	if !far {
		return late, nil
	}
	for _, e := range all.Disconnected() {
		reports := all.Reports(e)
		switch {
		case slices.Contains(s.IgnoredWorkers, e.Worker), made && (reports || e.Slot.Followed.Reaches(at)):
		//mutant:s34-lock-is-missing by internal/core/seq:TestFarJumpsWaitForNodesThatReconnect -> case false:
		case reports && e.Slot.Followed.Reaches(at): // else NotFollowed has it
			late.Behind = append(late.Behind, e)
		case !reports:
			late.Absent = append(late.Absent, e)
		}
	}
	return late, nil
}

// Absent returns the workers whose nodes are not connected, but may come back with their leases. They do not hear of a
// far jump, unless they are connected in time.
func (s Commands) Absent(ctx context.Context) ([]coordinator.Entry, error) {
	late, err := s.nodesBehind(ctx, coordinator.Change{}, true, false)
	return late.Absent, err
}

// isFarJump reports whether a change is a far jump: see jumpsFar. So is a name that begins anew a short time after it
// was purged: other nodes may know the record before.
func (v view) isFarJump(name string, after writes) bool {
	//mutant:s34-purged by internal/core/seq:TestPurgeNeedsAllNodes -> purged := false
	purged := v.Record == nil && slices.Contains(v.State.Changed, name)
	return purged || jumpsFar(v.Record, after.own) || slices.ContainsFunc(after.sections, func(s sectionWrite) bool {
		return jumpsFar(s.record, s.after)
	})
}

// AwaitFollowed blocks until all nodes have followed the last change of a name, or until GuardTime has passed. Then it
// returns a *NotFollowedError. It returns nil for a record that makes no far jumps.
func (s Commands) AwaitFollowed(ctx context.Context, n record.Named, st record.State) error {
	if !n.Record.GoesOnAlone() {
		return nil
	}
	at := coordinator.Change{Number: st.LastChange(n.Name), Incarnation: st.Incarnation}
	return s.await(ctx, at, true, true)
}

// IsFarJump reports whether a change that makes after of n is a far jump, for which no node may be absent: see
// Commands.IgnoredWorkers.
func IsFarJump(n, after record.Named) bool {
	far := jumpsFar(&n.Record, after.Record)
	for k, s := range n.Sections {
		far = far || k < len(after.Sections) && IsFarJump(s, after.Sections[k])
	}
	return far
}

// jumpsFar reports whether values jump beyond what the skip after a loss of data covers: a raised next value, or
// another life. If ZooKeeper loses the jump, and only nodes are left that do not know it, they come to the new values
// and give them again (S34). r is the record before, nil for none: such a name needs a start after a loss.
func jumpsFar(r *record.Record, after record.Record) bool {
	return r != nil && r.GoesOnAlone() && after.DeletedAt == 0 && (after.ID != r.ID || after.Next > r.Next)
}
