package seqimport

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// source is a generator whose counters can be read.
type source struct {
	name string
	// columns are the columns of a row without a header. The first one is the name of the counter. The first need
	// of them must be there.
	columns []string
	need    int
	read    func(*fields) (Counter, error)
}

func sources() []source {
	return []source{
		{"leaf", []string{"biz_tag", "max_id", "step"}, 2, ofLeaf},
		{"tinyid", []string{"biz_type", "max_id", "step", "delta", "remainder"}, 5, ofTinyID},
		{"mysql", []string{"name", "auto_increment", "max_id", "auto_increment_increment", "auto_increment_offset"}, 3, ofMySQL},
		{"postgres", []string{"name", "last_value", "is_called", "increment"}, 4, ofPostgres},
		{"redis", []string{"name", "value"}, 2, ofRedis},
	}
}

// Sources returns the names of the sources.
func Sources() (names []string) {
	for _, s := range sources() {
		names = append(names, s.name)
	}
	return names
}

// BadRows says which lines cannot be imported.
type BadRows []string

func (b BadRows) Error() string {
	const most = 10
	text := strings.Join(b[:min(len(b), most)], "; ")
	if more := len(b) - most; more > 0 {
		text += fmt.Sprintf("; and %d more lines", more)
	}
	return text
}

// Read returns the counters of a source. Each line of in is one, with its columns separated by tabs, | or commas. A
// first line with names of columns says which columns there are. rename returns the name of a counter's
// sequence, or an error. Read returns BadRows if there is any row that cannot be imported.
func Read(from string, in io.Reader, rename func(string) (string, error)) ([]Counter, error) {
	k := slices.IndexFunc(sources(), func(s source) bool { return s.name == from })
	if k < 0 {
		return nil, fmt.Errorf("must be one of %s, not %q", strings.Join(Sources(), ", "), from)
	}
	r := rows{source: sources()[k], rename: rename, seen: make(map[string]int)}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		r.line(n, strings.TrimSuffix(lines.Text(), "\r"))
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, fmt.Errorf("standard input: %w", err)
	case len(r.bad) > 0:
		return nil, r.bad
	case len(r.found) == 0:
		return nil, fmt.Errorf("standard input has no rows. Each has %s, separated by tabs or commas", strings.Join(r.source.columns, ", "))
	}
	return r.found, nil
}

// rows collects the counters of the lines.
type rows struct {
	source
	rename  func(string) (string, error)
	titles  []string // of the header, nil if there is none
	started bool
	found   []Counter
	bad     BadRows
	seen    map[string]int // the line of each sequence
}

func (r *rows) line(n int, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	cells := split(text)
	if first := !r.started; first {
		r.started = true
		if r.isHeader(cells) {
			r.titles = cells
			return
		}
	}
	c, err := r.counter(cells)
	if err == nil {
		if at := r.seen[c.Name]; at > 0 {
			err = fmt.Errorf("sequence %s is in line %d, too", c.Name, at)
		}
		r.seen[c.Name] = n
	}
	if err != nil {
		r.bad = append(r.bad, fmt.Sprintf("line %d: %v", n, err))
		return
	}
	c.Line = n
	r.found = append(r.found, c)
}

// split returns the cells of a line, without the quotes around them.
func split(text string) []string {
	separator := ","
	for _, other := range []string{"\t", "|"} {
		if strings.Contains(text, other) {
			separator = other
			break
		}
	}
	cells := strings.Split(text, separator)
	for k, cell := range cells {
		cell = strings.TrimSpace(cell)
		if len(cell) > 1 && cell[0] == '"' && cell[len(cell)-1] == '"' {
			cell = cell[1 : len(cell)-1]
		}
		cells[k] = cell
	}
	return cells
}

// isHeader reports whether the cells are names of columns: there is a known one, and no number.
func (r *rows) isHeader(cells []string) bool {
	known := slices.ContainsFunc(cells, func(cell string) bool { return slices.ContainsFunc(r.columns[1:], equal(cell)) })
	return known && !slices.ContainsFunc(cells, func(cell string) bool {
		_, err := strconv.ParseInt(cell, 10, 64)
		return err == nil
	})
}

func equal(a string) func(string) bool {
	return func(b string) bool { return strings.EqualFold(a, b) }
}

// counter returns the counter of a row.
func (r *rows) counter(cells []string) (Counter, error) {
	f := &fields{cells: make(map[string]string)}
	if r.titles == nil {
		if len(cells) < r.need || len(cells) > len(r.columns) {
			return Counter{}, fmt.Errorf("%s, but a row has %s, separated by tabs or commas", columns(len(cells)), r.columnsText())
		}
		for k, cell := range cells {
			f.cells[r.columns[k]] = cell
		}
	} else if len(cells) != len(r.titles) {
		return Counter{}, fmt.Errorf("%s, but the header has %d", columns(len(cells)), len(r.titles))
	}
	for k, title := range r.titles {
		if at := slices.IndexFunc(r.columns, equal(title)); at >= 0 {
			f.cells[r.columns[at]] = cells[k]
		}
	}
	for _, column := range r.columns[:r.need] {
		if _, ok := f.cells[column]; !ok {
			return Counter{}, fmt.Errorf("the header has no column %s. A row has %s", column, r.columnsText())
		}
	}
	c, err := r.read(f)
	if err == nil && c.First < 0 {
		err = errNegative
	}
	if err != nil {
		return c, err
	}
	c.Name, err = r.rename(f.cells[r.columns[0]])
	return c, err
}

func (r *rows) columnsText() string {
	text := strings.Join(r.columns[:r.need], ", ")
	if more := r.columns[r.need:]; len(more) > 0 {
		text += ", and may have " + strings.Join(more, ", ")
	}
	return text
}

// columns returns a number of columns as text.
func columns(n int) string {
	if n == 1 {
		return "1 column"
	}
	return fmt.Sprintf("%d columns", n)
}
