package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// patience is the time by which a driver may be late, because the machine may be loaded.
const patience = 30 * time.Second

// driver is a running driver of a client.
type driver struct {
	name   string
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{} // closed when its stdout has ended

	mu      sync.Mutex // guards what follows
	in      *json.Encoder
	last    int
	waiting map[int]chan answer
	loads   map[int]func(answer) // receive the lines of loads
}

// answer is a line that a driver writes.
type answer struct {
	ID     int         `json:"id"`
	Load   int         `json:"load"`
	Op     string      `json:"op"`
	Name   string      `json:"name"`
	TookMs float64     `json:"took_ms"`
	Values []string    `json:"values"`
	Error  *wrongdoing `json:"error"`
}

// startDriver starts a driver. At the end of the test it must end by itself, although its clients are not closed.
func startDriver(t *testing.T, name, command string) *driver {
	t.Helper()
	d := &driver{name: name, ended: make(chan struct{}), waiting: map[int]chan answer{}, loads: map[int]func(answer){}}
	d.cmd = exec.Command("sh", "-c", "exec "+command)
	d.cmd.Dir, d.cmd.Stderr, d.cmd.SysProcAttr = root, &d.stderr, zktest.DieWithUs()
	stdin, err := d.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	d.in = json.NewEncoder(stdin)
	go func() {
		defer close(d.ended)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			d.heard(t, lines.Bytes())
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		late := time.AfterFunc(patience, func() {
			t.Errorf("the driver of %s has not ended %s after its stdin", name, patience)
			_ = d.cmd.Process.Kill()
		})
		<-d.ended
		err := d.cmd.Wait()
		if late.Stop() && err != nil {
			t.Errorf("the driver of %s: %v", name, err)
		}
		if d.stderr.Len() > 0 && (testing.Verbose() || t.Failed()) {
			t.Logf("stderr of the driver of %s:\n%s", name, d.stderr.String())
		}
	})
	return d
}

// heard handles a line of the driver.
func (d *driver) heard(t *testing.T, line []byte) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		t.Errorf("the driver of %s writes %.200q: %v", d.name, line, err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.Load != 0 {
		if d.loads[a.Load] == nil {
			t.Errorf("the driver of %s writes a line of load %d after its end: %.200q", d.name, a.Load, line)
			return
		}
		d.loads[a.Load](a)
		return
	}
	if d.waiting[a.ID] == nil {
		t.Errorf("the driver of %s answers %d, which waits for no answer: %.200q", d.name, a.ID, line)
		return
	}
	d.waiting[a.ID] <- a
	delete(d.waiting, a.ID)
}

// send sends a command, with its number, and returns the number and the channel of the answer. If lines is not nil, the
// command is a load, and lines gets what it writes.
func (d *driver) send(command map[string]any, lines func(answer)) (id int, got chan answer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	got = make(chan answer, 1)
	d.waiting[d.last] = got
	if lines != nil {
		d.loads[d.last] = lines
	}
	command["id"] = d.last
	return d.last, got, d.in.Encode(command)
}

// call sends a command and waits for the answer, for some time longer than limit.
func (d *driver) call(command map[string]any, limit time.Duration) (answer, error) {
	_, got, err := d.send(command, nil)
	if err != nil {
		return answer{}, err
	}
	return d.wait(command, got, limit)
}

func (d *driver) wait(command any, got chan answer, limit time.Duration) (answer, error) {
	late := time.NewTimer(limit + patience)
	defer late.Stop()
	select {
	case a := <-got:
		return a, nil
	case <-d.ended:
		return answer{}, fmt.Errorf("the driver of %s has ended without an answer to %v", d.name, command)
	case <-late.C:
		return answer{}, fmt.Errorf("no answer of the driver of %s within %s to %v", d.name, limit+patience, command)
	}
}
