package doctor

import "fmt"

// enoughDescriptors suffice for 10,000 connections and the node's own files.
const enoughDescriptors = 10_300

// checkDescriptors judges the limit on open files of the node that runs on d. If it cannot read that
// limit, it judges the limit of this process.
func checkDescriptors(d stateDir) []Finding {
	if pid := d.look.LockedBy; pid != 0 { // 0: no process, or not visible
		if limit, ok := descriptorsOf(pid); ok {
			return []Finding{judgeDescriptors(fmt.Sprintf("process %d", pid), limit)}
		}
	}
	if limit, ok := OpenFiles(); ok {
		return []Finding{judgeDescriptors("a process started like this one", limit)}
	}
	return nil
}

func judgeDescriptors(who string, limit uint64) Finding {
	f := Finding{Check: "descriptors", Level: OK, Text: fmt.Sprintf("%s may open %d files", who, limit)}
	if limit > 1<<40 {
		f.Text = who + " may open any number of files"
	}
	if limit < enoughDescriptors {
		f.Level = Warn
		f.Advice = fmt.Sprintf("10,000 connections need %d: set LimitNOFILE= in the unit, or ulimit -Hn in a shell", enoughDescriptors)
	}
	return f
}
