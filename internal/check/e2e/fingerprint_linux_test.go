package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// onMachine starts the node in a mount namespace where machine-id and the product UUID have these
// values. "" is a part that cannot be read.
func (n *node) onMachine(id, uuid string) *node {
	const script = `set -e
mount -t tmpfs none /sys/class
mkdir -p /sys/class/dmi/id
[ -z "$2" ] || echo "$2" > /sys/class/dmi/id/product_uuid
mount --bind "$1" /etc/machine-id
shift 2
exec "$@"`
	t := n.site.t
	t.Helper()
	file := filepath.Join(t.TempDir(), "machine-id")
	if err := os.WriteFile(file, []byte(id), 0o644); err != nil {
		t.Fatal(err)
	}
	n.proc = launch(t, n.name, nil, "unshare", append([]string{"-m", "sh", "-c", script, "sh", file, uuid, n.site.build.binary(t)}, n.args()...)...)
	return n
}

// One state directory is used on a machine whose identities come and go, and then on others.
func TestMachineIsKnownAgain(t *testing.T) {
	if err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/sys/class").Run(); err != nil {
		t.Skipf("cannot mount in a namespace: %v", err)
	}
	t.Parallel()
	n := newSite(t, zktest.Chroot(t, zktest.Shared(t))).node()
	const uuid = "4c4c4544-0051-3010-8052-b4c04f4d4e32"
	before := n.onMachine("1", uuid).ready().identity()
	for _, tt := range []struct {
		name, id, uuid string
		same           bool
	}{
		{"machine-id is new at each boot", "2", uuid, true},
		{"the user may not read the product UUID", "2", "", true},
		{"root may again", "2", uuid, true},
		{"no machine-id", "", uuid, true},
		{"a clone of the machine with another product UUID", "2", "99999999-0051-3010-8052-b4c04f4d4e32", false},
		{"the clone gets another machine-id, and nobody reads the product UUID", "3", "", false},
		{"nothing can be read", "", "", false},
		{"nothing can be read there again", "", "", true},
	} {
		n.stop()
		now := n.onMachine(tt.id, tt.uuid).ready().identity()
		if same := now.uuid == before.uuid && now.worker == before.worker; same != tt.same {
			t.Errorf("%s: %+v, before %+v", tt.name, now, before)
		}
		n.get(100)
		before = now
	}
}
