package worker

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const lastID ID = 1<<63 - 1

var encodings = []Encoding{Decimal, Hex, Base32, Base36, Base58, Base62}

// Texts decode to the same ID. Those of all encodings but Decimal have one width and sort
// as the IDs do.
func TestEncodings(t *testing.T) {
	some := rapid.OneOf(rapid.Int64Range(0, 1<<63-1), rapid.Int64Range(0, 100))
	rapid.Check(t, func(t *rapid.T) {
		a, b := ID(some.Draw(t, "a")), ID(some.Draw(t, "b"))
		for _, e := range encodings {
			x, y := e.Encode(a), e.Encode(b)
			if e != Decimal && (len(x) != len(y) || (a < b) != (x < y) || (a == b) != (x == y)) {
				t.Fatalf("%s: %d is %s, %d is %s", e, a, x, b, y)
			}
			if got, err := e.Decode(x); err != nil || got != a {
				t.Fatalf("%s: %d is %s, which is %d, %v", e, a, x, got, err)
			}
		}
		for e, base := range map[Encoding]int{Hex: 16, Base36: 36} {
			if got, err := strconv.ParseInt(e.Encode(a), base, 64); err != nil || ID(got) != a {
				t.Fatalf("%s: %d is %s, which is %d, %v", e, a, e.Encode(a), got, err)
			}
		}
	})
	for e, want := range map[Encoding]string{
		Decimal: "9223372036854775807", Hex: "7fffffffffffffff", Base32: "7ZZZZZZZZZZZZ",
		Base36: "1y2p0ij32e8e7", Base58: "NQm6nKp8qFC", Base62: "AzL8n0Y58m7",
	} {
		if got := e.Encode(lastID); got != want {
			t.Errorf("%s: the last ID is %s, want %s", e, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, row := range []struct {
		name     string
		encoding Encoding
		text     string
		want     ID
		err      string
	}{
		{"decimal", Decimal, "9223372036854775807", lastID, ""},
		{"nought", Decimal, "0", 0, ""},
		{"upper case hex", Hex, "7FfFFFFFFFFFFFFF", lastID, ""},
		{"without leading zeros", Hex, "1f", 31, ""},
		{"what is written for nought", Base58, "11111111111", 0, ""},
		{"base36 in upper case", Base36, "1Y2P0IJ32E8E7", lastID, ""},
		{"Crockford's lower case", Base32, "7zzzzzzzzzzzz", lastID, ""},
		{"Crockford's likenesses", Base32, "oO1iIlL", 0b1_00001_00001_00001_00001, ""},
		{"leading zero", Decimal, "01", 0, "must not begin with a zero"},
		{"too great by one", Decimal, "9223372036854775808", 0, "above 2^63-1"},
		{"too great", Decimal, "9999999999999999999", 0, "above 2^63-1"},
		{"too great, hex", Hex, "8000000000000000", 0, "above 2^63-1"},
		{"too great, base32", Base32, "8000000000000", 0, "above 2^63-1"},
		{"too great, base36", Base36, "1y2p0ij32e8e8", 0, "above 2^63-1"},
		{"too great, base58", Base58, "zzzzzzzzzzz", 0, "above 2^63-1"},
		{"too great, base62", Base62, "AzL8n0Y58m8", 0, "above 2^63-1"},
		{"too long", Base62, "000000000001", 0, "1 to 11 digits"},
		{"empty", Base32, "", 0, "1 to 13 digits"},
		{"negative", Decimal, "-1", 0, "'-' is not a valid digit"},
		{"plus", Decimal, "+1", 0, "'+' is not a valid digit"},
		{"Crockford has no U", Base32, "U", 0, "'U' is not a valid digit"},
		{"Bitcoin's has no nought", Base58, "10", 0, "'0' is not a valid digit"},
		{"not ASCII", Base36, "é", 0, "is not a valid digit"},
		{"long and strange", Hex, strings.Repeat("\x00", 100), 0, "must have 1 to 16 digits"},
	} {
		got, err := row.encoding.Decode(row.text)
		if got != row.want || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %d, %v", row.name, got, err)
		}
	}
}

func TestJSON(t *testing.T) {
	type doc struct {
		ID   ID            `json:"id"`
		Ptr  *ID           `json:"ptr"`
		Keys map[ID]string `json:"keys"`
	}
	id := ID(2123840319823806551)
	b, err := json.Marshal(doc{id, &id, map[ID]string{id: "x"}})
	const want = `{"id":"2123840319823806551","ptr":"2123840319823806551","keys":{"2123840319823806551":"x"}}`
	if err != nil || string(b) != want {
		t.Fatalf("%s, %v", b, err)
	}
	var back doc
	if err := json.Unmarshal(b, &back); err != nil || back.ID != id || *back.Ptr != id || back.Keys[id] != "x" {
		t.Errorf("%+v, %v", back, err)
	}
	for _, row := range []struct {
		text string
		want ID
		ok   bool
	}{
		{`{"id":2123840319823806551}`, id, true},
		{`{"id":"2123840319823806551"}`, id, true},
		{`{"id":null}`, 7, true},
		{`{}`, 7, true},
		{`{"id":2.1e18}`, 7, false},
		{`{"id":-5}`, 7, false},
		{`{"id":""}`, 7, false},
		{`{"id":"x"}`, 7, false},
		{`{"id":true}`, 7, false},
		{`{"id":[1]}`, 7, false},
	} {
		got := doc{ID: 7}
		if err := json.Unmarshal([]byte(row.text), &got); (err == nil) != row.ok || got.ID != row.want {
			t.Errorf("%s: %d, %v", row.text, got.ID, err)
		}
	}
}

func TestSQL(t *testing.T) {
	if v, err := driver.DefaultParameterConverter.ConvertValue(ID(42)); err != nil || v != int64(42) {
		t.Errorf("%v, %v", v, err)
	}
	for _, row := range []struct {
		src  any
		want ID
		err  string
	}{
		{int64(42), 42, ""},
		{[]byte("42"), 42, ""},
		{uint64(42), 42, ""},
		{uint64(1 << 63), 0, "63 bits"},
		{"42", 42, ""},
		{int64(-1), 0, "must not be negative"},
		{"4 2", 0, "not a valid digit"},
		{nil, 0, "sql.Null"},
		{4.2, 0, "float64"},
	} {
		var id ID
		err := id.Scan(row.src)
		if id != row.want || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%v: %d, %v", row.src, id, err)
		}
	}
	for _, src := range []any{nil, int64(42)} {
		var n sql.Null[ID]
		if err := n.Scan(src); err != nil || n.Valid != (src != nil) || n.Valid && n.V != 42 {
			t.Errorf("%v: %+v, %v", src, n, err)
		}
	}
}

func ExampleEncoding() {
	id := ID(2123840319823806551)
	for _, e := range encodings {
		fmt.Println(e, e.Encode(id))
	}
	back, err := Base32.Decode("1tyb5gjqcoo2q")
	fmt.Println(back, err)
	// Output:
	// decimal 2123840319823806551
	// hex 1d796584aec00057
	// base32 1TYB5GJQC002Q
	// base36 0g4w6k5iz1lxz
	// base58 5vwL6oaL6zr
	// base62 2WtD5qBTRah
	// 2123840319823806551 <nil>
}
