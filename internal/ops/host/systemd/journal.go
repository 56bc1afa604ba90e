package systemd

import "github.com/coreos/go-systemd/v22/journal"

// StderrIsJournal reports whether systemd's journal reads this process's stderr.
func StderrIsJournal() bool {
	is, err := journal.StderrIsJournalStream()
	return is && err == nil
}
