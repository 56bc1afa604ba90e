package seqimport

import (
	"fmt"
	"strconv"
	"strings"
)

// fields are the cells of a row by column. err is the first error of its methods.
type fields struct {
	cells map[string]string
	err   error
}

// number returns a whole number. If the row has no such column, number returns otherwise.
func (f *fields) number(column string, otherwise ...int64) int64 {
	cell, ok := f.cells[column]
	if !ok && len(otherwise) > 0 {
		return otherwise[0]
	}
	n, err := strconv.ParseInt(cell, 10, 64)
	switch {
	case f.err != nil || err == nil:
	case isNull(cell):
		f.err = fmt.Errorf("%s is empty", column)
	default:
		f.err = fmt.Errorf("%s is %q, not a whole number of 64 bits", column, cell)
	}
	return n
}

// orZero is number, but a cell without a value counts as 0.
func (f *fields) orZero(column string) int64 {
	if isNull(f.cells[column]) {
		return 0
	}
	return f.number(column)
}

func isNull(cell string) bool {
	return cell == "" || cell == `\N` || strings.EqualFold(cell, "null") || strings.EqualFold(cell, "(nil)")
}

// truth returns a truth value as PostgreSQL prints it.
func (f *fields) truth(column string) bool {
	switch cell := f.cells[column]; strings.ToLower(cell) {
	case "t", "true":
		return true
	case "f", "false":
	default:
		if f.err == nil {
			f.err = fmt.Errorf("%s is %q, not t or f", column, cell)
		}
	}
	return false
}
