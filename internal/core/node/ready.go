package node

// Ready returns nil if other nodes may stop now: a request would get an ID, now or after a short wait, the node will go
// on serving, and it takes values of named sequences, or no other node does either. Otherwise it returns the *Refusal.
func (n *Node) Ready() error {
	switch err := n.WhyNoIDs(); {
	case err != nil:
		return err
	case n.draining.Load():
		return errDraining
	case n.waitsForSequences():
		return errSequencesElsewhere
	}
	return nil
}

// errSequencesElsewhere is the error of Ready while the node has just started. See waitsForSequences.
var errSequencesElsewhere = newRefusal(Refusal{Cause: CauseSequences, Phase: Serving})

// errDraining is the error of Ready after Drain.
var errDraining = newRefusal(Refusal{Cause: CauseDraining, Phase: Serving})

// WhyNoIDs returns nil if a request would get an ID, now or after a short wait. Otherwise it returns the *Refusal. It
// makes no ID.
func (n *Node) WhyNoIDs() error {
	t := n.serving.Load()
	if t == nil {
		return n.refusal.Load()
	}
	if err := t.gen.Ready(); err != nil {
		return n.explain(t, err)
	}
	return nil
}

// Began returns a channel that is closed once the node has begun to serve.
func (n *Node) Began() <-chan struct{} { return n.began }

// Drain prepares the stop of the node: from now on Ready returns a *Refusal with CauseDraining,
// so that clients leave. Reserve still makes IDs. If release is true, the node releases its
// worker when it stops, as with Config.ReleaseOnExit.
func (n *Node) Drain(release bool) {
	n.releases.Store(release)
	n.draining.Store(true)
}
