//go:build unix

// Package browser runs a real browser for tests: headless Chromium. It controls the browser
// with the Chrome DevTools Protocol over a pair of pipes.
//
// chromedp v0.23.0 could do it. It is not used because admin and internal/e2e need a browser, and
// are in the module that programs import: it would add chromedp, cdproto and a package for JSON to
// their go.sum. The protocol's few calls that the tests need are in this file.
package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long every wait may take.
const patience = 40 * time.Second

// names are the commands that may be a Chromium, in the order in which Start tries them.
var names = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// Browser is a running browser. It ends with the test.
type Browser struct {
	in  *os.File // for commands
	cmd *exec.Cmd

	mu      sync.Mutex // guards what follows
	next    int
	waiting map[int]chan reply
	tabs    map[string]*Tab // by session
	ended   error
}

// message is a command, an answer or an event of the protocol.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

type reply struct {
	result json.RawMessage
	err    error
}

// Start starts a browser. If none is installed it skips the test, or fails it under
// FLAKED_TEST_TOOLS=require.
func Start(t testing.TB) *Browser {
	t.Helper()
	var path string
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		const text = "there is no headless Chromium: scripts/get-tools.sh gets it (on Debian: apt-get install chromium-headless-shell)"
		if os.Getenv("FLAKED_TEST_TOOLS") == "require" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{in: in, waiting: map[int]chan reply{}, tabs: map[string]*Tab{}}
	home := t.TempDir()
	var log bytes.Buffer
	b.cmd = exec.Command(path, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
		"--no-proxy-server", "--hide-scrollbars", "--user-data-dir="+home, "about:blank")
	// --remote-debugging-pipe uses the file descriptors 3 and 4.
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	b.cmd.Stdout, b.cmd.Stderr = &log, &log
	b.cmd.Env = append(os.Environ(), "HOME="+home, "LC_ALL=C.UTF-8", "TZ=UTC")
	// A browser consists of many processes. They get a process group of their own.
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	heard := make(chan struct{})
	go func() { defer close(heard); b.hear(out) }()
	t.Cleanup(func() {
		in.Close()
		_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
		_ = b.cmd.Wait()
		out.Close()
		<-heard
		if t.Failed() && log.Len() > 0 {
			t.Logf("--- the browser says\n%s", log.Bytes())
		}
	})
	return b
}

// hear reads answers and events until the browser ends, and then fails the waiting calls.
func (b *Browser) hear(out *os.File) {
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.ended = fmt.Errorf("browser: it has ended: %w", err)
			for id, c := range b.waiting {
				c <- reply{err: b.ended}
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var m struct {
			message
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		switch c := b.waiting[m.ID]; {
		case c != nil:
			delete(b.waiting, m.ID)
			r := reply{result: m.Result}
			if m.Error != nil {
				r.err = errors.New("browser: " + m.Error.Message)
			}
			c <- r
		case b.tabs[m.Session] != nil && slices.Contains(noted, m.Method):
			tab := b.tabs[m.Session]
			tab.said = append(tab.said, m.Method+" "+string(m.Params))
		}
		b.mu.Unlock()
	}
}

// call sends a command and decodes the answer into result, unless result is nil. session is
// that of a tab, or "" for the browser.
func (b *Browser) call(session, method string, params any, result any) error {
	answer := make(chan reply, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return b.ended
	}
	b.next++
	line, err := json.Marshal(message{ID: b.next, Session: session, Method: method, Params: params})
	if err != nil {
		b.mu.Unlock()
		return err
	}
	b.waiting[b.next] = answer
	_, err = b.in.Write(append(line, 0))
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case r := <-answer:
		if r.err != nil || result == nil {
			return r.err
		}
		return json.Unmarshal(r.result, result)
	case <-time.After(patience):
		return fmt.Errorf("browser: %s: no answer within %v", method, patience)
	}
}

// View is the size of the window in CSS pixels, and the settings of the browser.
type View struct {
	Width, Height int
	Dark          bool
	NoScript      bool
}

// Tab is a page in the browser.
type Tab struct {
	t       testing.TB
	b       *Browser
	session string
	// said has the events in noted. b.mu guards it.
	said []string
}

// noted are messages of the console, exceptions and dialogues.
var noted = []string{"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening"}

// Open loads a page in a new tab. t may be a subtest: several may share one browser.
func (b *Browser) Open(t testing.TB, url string, v View) *Tab {
	t.Helper()
	p := &Tab{t: t, b: b}
	var target struct {
		ID string `json:"targetId"`
	}
	p.must(b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	var attached struct {
		Session string `json:"sessionId"`
	}
	p.must(b.call("", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached))
	p.session = attached.Session
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		p.must(p.call(domain+".enable", nil, nil))
	}
	p.Look(v)
	if v.NoScript {
		p.must(p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil))
	}
	p.Go(url)
	return p
}

func (p *Tab) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *Tab) call(method string, params, result any) error {
	return p.b.call(p.session, method, params, result)
}

// Look changes the size and the colour scheme. It ignores View.NoScript.
func (p *Tab) Look(v View) {
	p.t.Helper()
	p.must(p.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": v.Width < 500,
	}, nil))
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	p.must(p.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil))
}

// Go starts to load a page, and fails the test if that is not possible.
func (p *Tab) Go(url string) {
	p.t.Helper()
	var gone struct {
		Error string `json:"errorText"`
	}
	p.must(p.call("Page.navigate", map[string]any{"url": url}, &gone))
	if gone.Error != "" {
		p.t.Fatalf("browser: %s: %s", url, gone.Error)
	}
}

// Eval evaluates an expression of JavaScript, waits if the result is a promise, and stores
// the result in value, unless value is nil. It fails the test on an exception.
func (p *Tab) Eval(expression string, value any) {
	p.t.Helper()
	p.must(p.eval(expression, value))
}

func (p *Tab) eval(expression string, value any) error {
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	err := p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	switch {
	case err != nil:
		return err
	case r.Exception != nil:
		return fmt.Errorf("browser: %s: %s %s", expression, r.Exception.Text, r.Exception.Exception.Description)
	case value == nil || r.Result.Value == nil:
		return nil
	}
	return json.Unmarshal(r.Result.Value, value)
}

// Text returns the visible text of the first element that matches selector, or "" if there is
// none.
func (p *Tab) Text(selector string) (text string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &text)
	return text
}

// Until blocks until an expression is true, and returns how long that took. It fails the test
// after 40 s.
func (p *Tab) Until(expression string) time.Duration {
	p.t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		var ok bool
		err := p.eval("!!("+expression+")", &ok) // may fail while a page loads
		if err == nil && ok {
			break
		}
		if time.Since(began) > patience {
			text := p.Text("body")
			p.t.Fatalf("browser: after %v still not: %s (%v)\n%s\n%q", patience, expression, err, text, p.Said())
		}
	}
	return time.Since(began)
}

// Said returns the page's console messages, exceptions and dialogues.
func (p *Tab) Said() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return slices.Clone(p.said)
}

// Type types text into the element that has the focus.
func (p *Tab) Type(text string) {
	p.t.Helper()
	p.must(p.call("Input.insertText", map[string]any{"text": text}, nil))
}

// keyCodes are the Windows virtual key codes of the keys that Press knows.
var keyCodes = map[string]int{"Backspace": 8, "Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

// Press presses and releases a key, like "Tab" or "ArrowRight".
func (p *Tab) Press(key string) {
	p.t.Helper()
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": keyCodes[key]}
	if key == "Enter" {
		event["text"] = "\r"
	}
	p.must(p.call("Input.dispatchKeyEvent", event, nil))
	delete(event, "text")
	event["type"] = "keyUp"
	p.must(p.call("Input.dispatchKeyEvent", event, nil))
}

// Screenshot writes a PNG of the whole page to a file.
func (p *Tab) Screenshot(file string) { p.t.Helper(); p.capture(file, true) }

// FirstScreen writes a PNG of the page's first screen to a file.
func (p *Tab) FirstScreen(file string) { p.t.Helper(); p.capture(file, false) }

func (p *Tab) capture(file string, whole bool) {
	p.t.Helper()
	var shot struct {
		Data string `json:"data"`
	}
	p.must(p.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &shot))
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(file, picture, 0o644)
	}
	p.must(err)
}
