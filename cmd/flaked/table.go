package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// textTable is a table with columns two blanks apart and without borders.
type textTable struct {
	rows [][]string
	// right has the numbers of the columns that are aligned to the right.
	right map[int]bool
}

func (t *textTable) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table. It takes every character for one column wide.
func (t *textTable) print(w io.Writer) error {
	widths := map[int]int{}
	for _, row := range t.rows {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		for i, text := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
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
	return t.print(w)
}
