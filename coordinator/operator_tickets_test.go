package coordinator

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/zkstore"
)

func TestForgetTicket(t *testing.T) {
	l := newLab(t, 4)
	l.serving("A")
	b := l.node("B")
	b.hook = faulty(zkstore.FailBefore, 0, 1, touching("multi", slotPath(1)))
	if b.register() == nil {
		t.Fatal("it was to die with a ticket drawn")
	}
	b.crash()
	if _, err := l.admin.Create(t.Context(), ticketsPath+"/rubbish", []byte("{"), zkstore.Persistent); err != nil {
		t.Fatal(err)
	}
	entries, err := ReadSlots(t.Context(), l.admin, l.cluster())
	if err != nil {
		t.Fatal(err)
	}
	unused, err := UnusedTickets(t.Context(), l.admin, entries)
	if err != nil || len(unused) != 2 || unused[0].Name != "n-0000000001" || unused[0].Labels.Name != "B" || unused[0].Stat.Ctime != l.now || unused[1].Name != "rubbish" || unused[1].Node != "" {
		t.Errorf("%+v, %v", unused, err)
	}
	inUse := wantErrAs[*TicketInUseError](t, ForgetTicket(t.Context(), l.admin, l.cluster(), "n-0000000000"))
	if inUse.Worker != 0 || inUse.Holder.Name != "A" {
		t.Errorf("%+v", inUse)
	}
	for _, name := range []string{"n-0000000001", "rubbish"} {
		if err := ForgetTicket(t.Context(), l.admin, l.cluster(), name); err != nil {
			t.Error(err)
		}
	}
	if err := ForgetTicket(t.Context(), l.admin, l.cluster(), "rubbish"); !errors.Is(err, zkstore.ErrNoNode) {
		t.Errorf("%v", err)
	}
	if names := l.children(ticketsPath); len(names) != 1 {
		t.Errorf("%q", names)
	}
}
