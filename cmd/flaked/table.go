package main

import (
	"io"
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

// print writes the table. It takes every character for one column wide.
func (t *textTable) print(w io.Writer, colour bool) error {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
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
