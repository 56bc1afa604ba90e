package web

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Event is a line of the node's log.
type Event struct {
	// ID is 1 for the first event, and one more for each further event.
	ID        int64  `json:"id"`
	AtMs      int64  `json:"at_ms"` // Unix milliseconds
	Level     string `json:"level"` // info, warn or error
	Component string `json:"component"`
	Message   string `json:"message"`
	// Fields are names and values, in the order of the log.
	Fields [][2]string `json:"fields"`
}

// keptEvents is how many events Events keeps.
const keptEvents = 200

// Events keeps the latest 200 log lines of level info and above. The status page shows
// them. Register it as a sink of an hclog.InterceptLogger.
type Events struct {
	mu   sync.Mutex // guards what follows
	last []Event    // oldest first
	next int64
}

var _ hclog.SinkAdapter = (*Events)(nil)

// Accept implements hclog.SinkAdapter. It ignores levels below info.
func (e *Events) Accept(name string, level hclog.Level, msg string, args ...any) {
	if level < hclog.Info {
		return
	}
	event := Event{AtMs: time.Now().UnixMilli(), Level: level.String(), Component: name, Message: msg,
		Fields: [][2]string{}}
	for i := 0; i+1 < len(args); i += 2 {
		event.Fields = append(event.Fields, [2]string{fmt.Sprint(args[i]), fmt.Sprint(args[i+1])})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	event.ID = e.next
	if len(e.last) == keptEvents {
		e.last = append(e.last[:0], e.last[1:]...) // Last has given out copies
	}
	e.last = append(e.last, event)
}

// Last returns a copy of up to n of the latest events, oldest first.
func (e *Events) Last(n int) []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Event{}, e.last[max(0, len(e.last)-n):]...)
}
