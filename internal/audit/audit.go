// Package audit keeps a list, in ZooKeeper, of the commands by which people changed a cluster.
//
// Each entry is a child of /audit. The command writes it before its first change, and adds the
// outcome when it ends. The list is for people: no node depends on it, and a command goes on
// if its entry cannot be written.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/flaked/flaked/zkstore"
)

const (
	// Kept is how many entries the list keeps: the latest ones.
	Kept = 200
	// maxText is the most bytes of each text of an entry.
	maxText = 500

	path = "/audit"
)

// Done is the outcome of a command that succeeded.
const Done = "done"

// Entry is one command that changed the cluster, or may have changed it.
type Entry struct {
	// AtMs is the time of the command's first change by the clock of ZooKeeper's leader, Unix ms.
	AtMs int64 `json:"at_ms"`
	// By is the operator, as USER@HOST.
	By string `json:"by"`
	// Command is the command with its flags, but for those that say how to reach ZooKeeper.
	Command string `json:"command"`
	// Outcome is Done or the error. Empty: the command runs, or it was killed.
	Outcome string `json:"outcome"`

	name  string // of the record: a random part, "-", and ZooKeeper's number of ten digits
	order int64  // zxid of its creation
}

// List returns the entries, oldest first.
func List(ctx context.Context, store zkstore.Store) ([]Entry, error) {
	names, err := store.Children(ctx, path)
	if errors.Is(err, zkstore.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(ctx, store, names)
}

func read(ctx context.Context, store zkstore.Store, names []string) ([]Entry, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = path + "/" + name
	}
	found, err := store.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for i, r := range found {
		if !r.Found {
			continue // removed meanwhile
		}
		e := Entry{}
		if err := json.Unmarshal(r.Data, &e); err != nil {
			e = Entry{By: "?", Command: "an entry that cannot be read: " + names[i]}
		}
		e.AtMs, e.name, e.order = r.Stat.Ctime, names[i], r.Stat.Czxid
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.order, b.order) })
	return all, nil
}

// Add adds an entry and removes the oldest ones beyond Kept. It returns the path of the entry's
// record, for Finish.
func Add(ctx context.Context, store zkstore.Store, e Entry) (string, error) {
	if err := store.EnsureRoot(ctx, path); err != nil {
		return "", err
	}
	at, err := store.Create(ctx, path+"/"+uuid.NewString()[:8]+"-", e.marshal(), zkstore.PersistentSequential)
	if err != nil {
		return "", err
	}
	_ = prune(ctx, store) // what it leaves, the next command removes
	return at, nil
}

// Finish writes the outcome of a command.
func Finish(ctx context.Context, store zkstore.Store, at string, e Entry) error {
	_, err := store.Set(ctx, at, e.marshal(), zkstore.AnyVersion)
	return err
}

func (e Entry) marshal() []byte {
	data, err := json.Marshal(struct {
		By      string `json:"by"`
		Command string `json:"command"`
		Outcome string `json:"outcome"`
	}{cut(e.By), cut(e.Command), cut(e.Outcome)})
	if err != nil {
		panic(fmt.Sprintf("audit: strings cannot be marshalled: %v", err))
	}
	return data
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText] + "..."
}

// prune removes the oldest entries beyond Kept.
func prune(ctx context.Context, store zkstore.Store) error {
	names, err := store.Children(ctx, path)
	if err != nil || len(names) <= Kept {
		return err
	}
	all, err := read(ctx, store, names)
	if err != nil {
		return err
	}
	for _, old := range all[:max(0, len(all)-Kept)] {
		err := store.Delete(ctx, path+"/"+old.name, zkstore.AnyVersion)
		if err != nil && !errors.Is(err, zkstore.ErrNoNode) { // another command may remove it too
			return err
		}
	}
	return nil
}
