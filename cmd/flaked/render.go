package main

import (
	"cmp"
	"encoding/json"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/ops/view"
)

// show prints a document as JSON if -o says so, and otherwise calls table.
func show(c *cli.Context, doc any, table func(io.Writer) error) error {
	if asJSON(c) {
		return printJSON(c.App.Writer, doc)
	}
	return table(c.App.Writer)
}

// showFields is show for names and values below each other.
func showFields(c *cli.Context, doc any, rows [][2]string) error {
	return show(c, doc, func(w io.Writer) error { return printFields(w, rows) })
}

// printJSON prints an indented document.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// timeFormat is that of all times in tables.
const timeFormat = view.TimeFormat

// printable returns text from ZooKeeper or a node for a cell.
func printable(s string) string { return orDash(view.Clean(s)) }

// orDash returns s, or "-" for an empty cell.
func orDash(s string) string { return cmp.Or(s, "-") }

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
