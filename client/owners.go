package client

import (
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/dialog"
)

// An ordered sequence has one node as its owner, and so has each section of a family. Every node answers requests, but
// the owner does so without asking another node. So the client asks nodes now and then who owns what it uses.

const (
	// lookAgain is the time for which the client believes that it knows an owner.
	lookAgain = 10 * time.Second
	// lookPause is the least time between two looks at owners.
	lookPause = 100 * time.Millisecond
	// maxOwners and maxFamilies bound the memory. A client that uses more begins anew.
	maxOwners   = 4096
	maxFamilies = 64
)

// owners has the nodes that own ordered sequences, as far as the client knows. pool.mu guards it.
type owners struct {
	families map[string]int // the number of sections, by prefix
	known    map[section]owner
	next     time.Time // of the next look
}

// section is what a node can own: a section of the family with the prefix name or, with the number -1, a plain
// sequence.
type section struct {
	name   string
	number int
}

type owner struct {
	ordered bool
	node    *node     // nil if it is none of Config.Addrs
	until   time.Time // when it is looked at again
}

// sectionOf returns where the name of a sequence belongs, as far as the client knows.
func (o *owners) sectionOf(name string) section {
	for prefix, sections := range o.families {
		if strings.HasPrefix(name, prefix) {
			number, _ := positions.SectionAndLane(name, sections)
			return section{prefix, number}
		}
	}
	return section{name, -1}
}

// of returns the node that owns a sequence, nil if none is known.
func (o *owners) of(name string) *node { return o.known[o.sectionOf(name)].node }

// ordered reports whether a sequence is known to be ordered.
func (o *owners) ordered(name string) bool { return o.known[o.sectionOf(name)].ordered }

// beginLook reports whether the caller must ask for the owner of a sequence now. If so, no look at any owner begins for
// lookPause. The owner is looked at again after lookAgain, and sooner if it fails.
func (o *owners) beginLook(name string, now time.Time) bool {
	if name == "" || now.Before(o.next) {
		return false
	}
	if k, ok := o.known[o.sectionOf(name)]; ok && now.Before(k.until) && (k.node == nil || k.node.healthy()) {
		return false
	}
	o.next = now.Add(lookPause)
	return true
}

// learn notes a reply to SEQ. An error changes nothing that is known.
func (o *owners) learn(name, line string, nodes []*node, now time.Time) {
	if o.known == nil || len(o.known) >= maxOwners || len(o.families) >= maxFamilies {
		o.known, o.families = make(map[section]owner), make(map[string]int)
	}
	at := o.sectionOf(name)
	if strings.HasPrefix(line, "-") {
		old := o.known[at]
		old.until = now.Add(lookAgain)
		o.known[at] = old
		return
	}
	delete(o.families, at.name) // it may have been deleted, or created anew
	fields := dialog.Fields(line)
	found := owner{until: now.Add(lookAgain)}
	for _, n := range nodes {
		if n.network == "tcp" && n.address == fields["owner"] {
			found.node = n
		}
	}
	_, found.ordered = fields["owner"]
	prefix, family := strings.CutSuffix(fields["family"], "*")
	sections, _ := strconv.Atoi(fields["sections"])
	if family && strings.HasPrefix(name, prefix) && sections > 0 && sections <= positions.MaxSections {
		o.families[prefix] = sections
	}
	o.known[o.sectionOf(name)] = found
}

// look asks a node for the owner of a job's sequence. An error means that the connection has failed.
func (p *pool) look(conn *conn, j *job) error {
	line, err := conn.ask("SEQ "+j.query.name, time.Now().Add(j.share))
	if err != nil {
		return err
	}
	conn.done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owners.learn(j.query.name, string(line), p.nodes, time.Now())
	return nil
}
