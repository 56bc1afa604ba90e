package main

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// cell is one field of a table. colour is an ANSI code, "" for none.
type cell struct{ text, colour string }

// textTable is a table with columns two blanks apart and without borders.
type textTable struct {
	rows [][]cell
	// right has the numbers of the columns that are aligned to the right.
	right map[int]bool
}

// add adds a row, and returns it.
func (t *textTable) add(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, s := range texts {
		row[i].text = s
	}
	t.rows = append(t.rows, row)
	return row
}

// widths returns the width of each column. It takes every character for one column wide.
func (t *textTable) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	return widths
}

// fit makes the table at most columns wide, if that is above 0. It leaves out the columns with these
// headings, in this order, until the rest fits. It then shortens the widest cells.
func (t *textTable) fit(columns int, least ...string) {
	const between, shortest = 2, 8
	if columns <= 0 || len(t.rows) == 0 {
		return
	}
	for {
		widths := t.widths()
		total := -between
		for _, width := range widths {
			total += width + between
		}
		widest := slices.Index(widths, slices.Max(widths))
		switch {
		case total <= columns:
			return
		case len(least) > 0:
			at := slices.IndexFunc(t.rows[0], func(c cell) bool { return c.text == least[0] })
			least = least[1:]
			t.leaveOut(at)
		case widths[widest] <= shortest:
			return // better too wide than unreadable
		default:
			t.shorten(widest, max(shortest, widths[widest]-(total-columns)))
		}
	}
}

// leaveOut removes the column at an index, none for -1.
func (t *textTable) leaveOut(at int) {
	if at < 0 {
		return
	}
	for i, row := range t.rows {
		t.rows[i] = slices.Delete(row, at, at+1)
	}
	right := make(map[int]bool)
	for i, is := range t.right {
		if i < at {
			right[i] = is
		} else if i > at {
			right[i-1] = is
		}
	}
	t.right = right
}

// shorten cuts the cells of a column to a width. A cut cell ends in "..".
func (t *textTable) shorten(at, width int) {
	for _, row := range t.rows {
		if runes := []rune(row[at].text); len(runes) > width {
			row[at].text = string(runes[:width-2]) + ".."
		}
	}
}

// print writes the table.
func (t *textTable) print(w io.Writer, colour bool) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			text := c.text
			if colour && c.colour != "" {
				text = "\x1b[" + c.colour + "m" + text + "\x1b[0m"
			}
			switch {
			case t.right[i]:
				text = padding + text
			case i < len(row)-1:
				text += padding
			}
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(text)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printFields prints names and values below each other.
func printFields(w io.Writer, rows [][2]string) error {
	var t textTable
	for _, r := range rows {
		t.add(r[0], r[1])
	}
	return t.print(w, false)
}
