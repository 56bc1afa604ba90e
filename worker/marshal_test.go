package worker

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"strings"
	"testing"
)

func TestParseID(t *testing.T) {
	for _, row := range []struct {
		text string
		want ID
		ok   bool
	}{
		{"9223372036854775807", 1<<63 - 1, true},
		{"0", 0, true},
		{"9223372036854775808", 0, false},
		{"01", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"", 0, false},
		{"0x1f", 0, false},
	} {
		if got, err := ParseID(row.text); got != row.want || (err == nil) != row.ok {
			t.Errorf("%q: %d, %v", row.text, got, err)
		}
	}
}

// FuzzParseID: a text is an ID only if the ID is written so, alone and in JSON.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"0", "9223372036854775807", "9223372036854775808", "-0", "1_0", "null", `"5"`, `""`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseID(text)
		if err == nil && id.String() != text {
			t.Fatalf("%q is %d", text, id)
		}
		inJSON := ID(7)
		wrong := json.Unmarshal([]byte(text), &inJSON)
		if digits := strings.Trim(text, " \t\r\n\""); wrong == nil && inJSON.String() != digits && digits != "null" &&
			!strings.Contains(text, `\u`) {
			t.Fatalf("%q is %d in JSON", text, inJSON)
		}
		if err == nil && (wrong != nil || inJSON != id) {
			t.Fatalf("%q is %d in JSON: %v", text, inJSON, wrong)
		}
	})
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
		{"4 2", 0, "is not an ID"},
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
