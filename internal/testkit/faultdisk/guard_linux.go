package faultdisk

import (
	"os/exec"
	"syscall"
)

// undo is the shell script of the guard. It removes the disk when its input ends. It thaws the
// disk first, because a process that waits for a frozen disk does not end when it is killed. A
// mount that is still in use disappears along with the loop device when its last user ends.
//
// If a thread of the test process waits for the frozen disk, kill -9 does not close the files of
// the process. Then the guard's input does not end. For this case the script also polls the
// status of the process once a second. It thaws the disk if the process is dead or has SIGKILL
// pending. SIGKILL is the lowest bit of the third digit from the right of SigPnd.
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

// guard starts a process that removes the disk when release is called. It also removes the disk
// if this process ends without calling release: by a panic, by the test's timeout or by
// kill -9. Without the guard, a frozen disk and the processes that wait for it would stay until
// the machine is restarted.
func (d *Disk) guard() (release func(), err error) {
	cmd := exec.Command("sh", "-c", undo, "faultdisk", d.base)
	// In a session of its own the guard gets no signal from Ctrl-C.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = hold.Close()
		_ = cmd.Wait() // some commands had nothing to undo
	}, nil
}
