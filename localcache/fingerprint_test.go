package localcache

import (
	"slices"
	"testing"

	"github.com/flaked/flaked/internal/testkit/memfile"
)

// whole has every part.
var whole = Fingerprint{MachineID: "m", ProductUUID: "p", Filesystem: "f", Inode: "i", BirthTime: "b"}

// but returns whole with a change.
func but(change func(*Fingerprint)) Fingerprint {
	fp := whole
	change(&fp)
	return fp
}

func TestChanged(t *testing.T) {
	pod := Fingerprint{Filesystem: "f", Inode: "i", BirthTime: "b"}
	noID := but(func(fp *Fingerprint) { fp.MachineID = "" })
	user := but(func(fp *Fingerprint) { fp.ProductUUID = "" })
	userWithoutStatx := but(func(fp *Fingerprint) { fp.ProductUUID, fp.BirthTime = "", "" })
	for _, tt := range []struct {
		name      string
		now, then Fingerprint
		want      []string // none: the node resumes
	}{
		// The same file on the same machine. XFS under another device number changes no part.
		{"nothing changed", whole, whole, nil},
		{"a machine-id that is new at each boot", but(func(fp *Fingerprint) { fp.MachineID = "m2" }), whole, nil},
		{"no machine-id any more", noID, whole, nil},
		{"the product UUID is not readable any more", user, whole, nil},
		{"statx is not available any more", but(func(fp *Fingerprint) { fp.BirthTime = "" }), whole, nil},
		{"neither product UUID nor birth time", userWithoutStatx, whole, nil},
		{"a filesystem without birth times", userWithoutStatx, userWithoutStatx, nil},
		{"a pod without identities", pod, pod, nil},

		// A copy on the same machine.
		{"cp, tar, restored beside", but(func(fp *Fingerprint) { fp.Inode, fp.BirthTime = "i2", "b2" }), whole,
			[]string{PartInode, PartBirthTime}},
		{"written back after a deletion, inode used again", but(func(fp *Fingerprint) { fp.BirthTime = "b2" }), whole,
			[]string{PartBirthTime}},
		{"mv to another filesystem", but(func(fp *Fingerprint) {
			fp.Filesystem, fp.Inode, fp.BirthTime = "f2", "i2", "b2"
		}), whole,
			[]string{PartFilesystem, PartInode, PartBirthTime}},
		{"cp to the same inode of another filesystem",
			but(func(fp *Fingerprint) { fp.Filesystem, fp.BirthTime = "f2", "" }), whole, []string{PartFilesystem}},
		{"a clone with a new UUID of the filesystem, a snapshot of btrfs",
			but(func(fp *Fingerprint) { fp.Filesystem = "f2" }), whole, []string{PartFilesystem}},
		{"cp, seen by another user without statx", but(func(fp *Fingerprint) {
			fp.ProductUUID, fp.Inode, fp.BirthTime = "", "i2", ""
		}), whole, []string{PartInode}},

		// A volume on another machine.
		{"another machine", but(func(fp *Fingerprint) { fp.MachineID, fp.ProductUUID = "m2", "p2" }), whole,
			[]string{PartMachineID, PartProductUUID}},
		{"a cloned machine keeps machine-id", but(func(fp *Fingerprint) { fp.ProductUUID = "p2" }), whole,
			[]string{PartProductUUID}},
		{"another machine, where the product UUID is not readable",
			but(func(fp *Fingerprint) { fp.MachineID, fp.ProductUUID = "m2", "" }), whole,
			[]string{PartMachineID, PartProductUUID}},
		{"another machine, never a product UUID",
			but(func(fp *Fingerprint) { fp.MachineID, fp.ProductUUID = "m2", "" }), user, []string{PartMachineID}},
		{"another machine, never a machine-id", but(func(fp *Fingerprint) { fp.MachineID, fp.ProductUUID = "", "p2" }),
			noID, []string{PartProductUUID}},

		// No identity proves the machine.
		{"a pod without identities gets the volume", pod, whole, []string{PartMachineID, PartProductUUID}},
		{"only machine-id, then only the product UUID", noID, user, []string{PartMachineID, PartProductUUID}},
		{"a pod without identities, a birth time on one side", but(func(fp *Fingerprint) {
			fp.MachineID, fp.ProductUUID, fp.BirthTime = "", "", ""
		}), pod, []string{PartBirthTime}},
	} {
		if got := tt.now.Changed(tt.then); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if got := tt.then.Changed(tt.now); !slices.Equal(got, tt.want) {
			t.Errorf("%s, the other way round: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestPartThatWasReadOnceIsRemembered starts a file as root, as another user in a sandbox without
// statx, and then in another place as root.
func TestPartThatWasReadOnceIsRemembered(t *testing.T) {
	for _, tt := range []struct {
		name string
		last Fingerprint
		want []string
	}{
		{"the same", whole, nil},
		{"a clone with its machine-id", but(func(fp *Fingerprint) { fp.ProductUUID = "p2" }),
			[]string{PartProductUUID}},
		{"a copy at the same inode", but(func(fp *Fingerprint) { fp.BirthTime = "b2" }), []string{PartBirthTime}},
	} {
		f := memfile.New(nil)
		var got []string
		for _, fp := range []Fingerprint{whole, but(func(fp *Fingerprint) { fp.ProductUUID, fp.BirthTime = "", "" }),
			tt.last} {
			if got != nil {
				t.Fatalf("%s: the sandbox changes %v", tt.name, got)
			}
			c, err := New(f, fp)
			if err != nil {
				t.Fatal(err)
			}
			got = c.Load().Changed
			mustSave(t, c, sample())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	// A copy must not keep what the original was.
	f := memfile.New(nil)
	for _, fp := range []Fingerprint{whole, {MachineID: "m2", Filesystem: "f2", Inode: "i2"}} {
		c, err := New(f, fp)
		if err != nil {
			t.Fatal(err)
		}
		mustSave(t, c, sample())
		if got := c.Load().Record.Fingerprint; got != fp {
			t.Errorf("%+v, want %+v", got, fp)
		}
	}
}

func TestSharedProductUUIDIsNoIdentity(t *testing.T) {
	for uuid, want := range map[string]bool{
		"": false, "00000000-0000-0000-0000-000000000000": false, "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF": false,
		"03000200-0400-0500-0006-000700080009": false, "4c4c4544-0051-3010-8052-b4c04f4d4e32": true,
	} {
		if got := uuidHash(uuid) != ""; got != want {
			t.Errorf("%q: %v, want %v", uuid, got, want)
		}
	}
	if uuidHash("4C4C4544-0051-3010-8052-B4C04F4D4E32") != uuidHash("4c4c4544-0051-3010-8052-b4c04f4d4e32") {
		t.Error("upper case is another machine")
	}
}
