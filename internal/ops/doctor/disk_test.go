package doctor

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/localcache"
)

func TestDoctorReportsDiskFaults(t *testing.T) {
	t.Parallel()
	disk := faultdisk.New(t)
	dir := filepath.Join(disk.Dir(), "state")
	cache, err := localcache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.Close(); err != nil {
		t.Fatal(err)
	}
	look := func(timeout time.Duration) []Finding {
		cfg := Config{StateDir: dir, Timeout: timeout}
		d := examine(t.Context(), cfg)
		defer d.look.Close()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		return checkDir(ctx, cfg, d)
	}
	const patience = 10 * time.Second
	at(t, look(patience), "state-dir").wants(t, "well", OK, "holds no state of a node")
	if f := at(t, look(patience), "durability"); f.Level == Fail || !strings.Contains(f.Text, "its sync take") {
		t.Errorf("well: %+v", f)
	}
	disk.Fill()
	at(t, look(patience), "space").wants(t, "full", Fail, "Free space")
	at(t, look(patience), "durability").wants(t, "full", Fail, "no space left on device")
	disk.Free()
	disk.ReadOnly()
	at(t, look(patience), "durability").wants(t, "read-only", Fail, "repair it")
	disk.ReadWrite()
	disk.Freeze()
	begin := time.Now()
	at(t, look(300*time.Millisecond), "durability").wants(t, "stalled", Fail, "is not synced in time")
	if took := time.Since(begin); took > patience {
		t.Errorf("it took %s", took)
	}
	disk.Thaw()
	if f := at(t, look(patience), "durability"); f.Level == Fail {
		t.Errorf("well again: %+v", f)
	}
}
