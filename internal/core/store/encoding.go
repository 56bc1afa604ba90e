package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
)

// Marshal returns a record as JSON.
func Marshal(record any) []byte {
	b, err := json.Marshal(record)
	if err != nil {
		panic(err) // plain structs of strings and numbers: cannot happen
	}
	return b
}

// Nonce returns 64 random bits, in hexadecimal digits. A record that has them is told from all others.
func Nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}
