package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/ops/words"
)

// textTable is a table with columns two blanks apart and without borders.
type textTable [][]string

func (t *textTable) add(cells ...string) { *t = append(*t, cells) }

func (t textTable) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	return out.Flush()
}

// printDoc prints a document as JSON if -o says so, and otherwise calls table.
func printDoc(c *cli.Context, doc any, table func(io.Writer) error) error {
	if asJSON(c) {
		return printJSON(c.App.Writer, doc)
	}
	return table(c.App.Writer)
}

// printText prints on standard output, in the format of fmt.Printf.
func printText(c *cli.Context, format string, a ...any) error {
	_, err := fmt.Fprintf(c.App.Writer, format, a...)
	return err
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printable returns text from ZooKeeper or a node for a cell, "-" if it is empty.
func printable(s string) string { return cmp.Or(words.Clean(s), "-") }

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
