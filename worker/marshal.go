package worker

import (
	"database/sql/driver"
	"fmt"
	"math"
	"strconv"
)

// ParseID reads an ID in decimal, as String writes it: without a sign and without leading zeros.
func ParseID(text string) (ID, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if id := ID(n); err == nil && id >= 0 && id.String() == text {
		return id, nil
	}
	return 0, fmt.Errorf("%.40q is not an ID: IDs are decimal numbers from 0 to %d", text, int64(math.MaxInt64))
}

// MarshalJSON returns the ID in decimal as a JSON string. JavaScript, and other programs
// that read numbers as doubles, would round a number.
func (id ID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, id.String()), nil
}

// UnmarshalJSON reads an ID from a JSON string or number that has only decimal digits. null
// leaves the ID as it is.
func (id *ID) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == "null" {
		return nil
	}
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		text = text[1 : n-1]
	}
	return id.set(text)
}

// MarshalText returns the ID in decimal.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads an ID in decimal.
func (id *ID) UnmarshalText(b []byte) error { return id.set(string(b)) }

func (id *ID) set(text string) error {
	v, err := ParseID(text)
	if err != nil {
		return err
	}
	*id = v
	return nil
}

// Value returns the ID as an integer for a database column of 64 bits (BIGINT, or INTEGER
// in SQLite).
func (id ID) Value() (driver.Value, error) { return int64(id), nil }

// Scan reads a column: an integer, or a text of decimal digits. Use sql.Null[worker.ID] for
// a column that may be NULL.
func (id *ID) Scan(src any) error {
	switch v := src.(type) {
	case int64:
		if v < 0 {
			return fmt.Errorf("%d is not an ID: an ID must not be negative", v)
		}
		*id = ID(v)
		return nil
	case uint64: // BIGINT UNSIGNED
		if v > math.MaxInt64 {
			return fmt.Errorf("%d is not an ID: an ID has 63 bits", v)
		}
		*id = ID(v)
		return nil
	case []byte:
		return id.set(string(v))
	case string:
		return id.set(v)
	case nil:
		return fmt.Errorf("NULL is not an ID. Scan into sql.Null[worker.ID]")
	}
	return fmt.Errorf("a %T is not an ID. The column must be a 64-bit integer or text", src)
}
