package health

// Marks says what the page marks in the row of a worker.
type Marks struct {
	Away     bool // no node is connected, or the record is missing
	Off      bool // the clock is too far off
	Late     bool // the node has missed a heartbeat. The problem heartbeats-missed needs three
	Refusing bool // the node is connected, and refuses
}

// Trouble reports whether an operator should look at the worker.
func (m Marks) Trouble() bool { return m.Away || m.Off || m.Late || m.Refusing }

// Marks returns the marks of a worker by its record. own is the worker if this process has it, else nil: the process
// knows its own state before ZooKeeper does. stale means that the record should have been read again since.
func (w WorkerReport) Marks(own *OwnWorker, stale bool) Marks {
	m := Marks{Away: w.State == Disconnected || w.State == RecordMissing, Off: w.ClockOff()}
	if w.State != Live {
		return m
	}
	if m.Refusing = w.Refuses(); own != nil {
		m.Refusing, m.Off = !own.Ready, m.Off || own.ClockTrouble()
	}
	m.Late = !stale && w.ReportAgeMs != nil && HeartbeatOverdue(*w.ReportAgeMs, w.HeartbeatMs)
	return m
}
