package faultdisk

import (
	"os/exec"
	"syscall"
)

// undo is what the guard does when its input ends. Thawing comes first: what
// waits for a frozen disk cannot even be killed. A mount that is still in use
// goes when its last user does, and takes the loop device along.
//
// A process of which one thread waits for the frozen disk keeps its files open
// when it is killed, and so the guard's input. It is known by its status: dead,
// or with SIGKILL pending, which is the lowest bit of the third digit.
const undo = `
(
	while grep -q '^State:.[^ZX]' /proc/$PPID/status && ! grep -q '^SigPnd:.*[13579bdf]..$' /proc/$PPID/status; do
		sleep 1
	done
	fsfreeze --unfreeze "$1/disk"
) &
cat
kill $!
fsfreeze --unfreeze "$1/disk"
chattr -i "$1/image"
umount "$1/disk" || umount --lazy "$1/disk"
rm -f "$1/image"
rmdir "$1/disk" "$1"
`

// guard starts a process that takes the disk away when release is called, and
// just so when this process is gone without having called it: by a panic, by
// the test's timeout, by kill -9. A frozen disk and the processes that wait for
// it would else stay until the machine is restarted.
func (d *Disk) guard() (release func(), err error) {
	cmd := exec.Command("sh", "-c", undo, "faultdisk", d.base)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for us
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = hold.Close()
		_ = cmd.Wait() // some of it had nothing to do
	}, nil
}
