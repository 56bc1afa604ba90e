package lineproto

import (
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	b := &fakeBackend{}
	for _, tc := range []struct {
		name, want string // part of the error, empty for none
		cfg        Config
	}{
		{"defaults", "", Config{Backend: b}},
		{"all set", "", Config{Backend: b, MaxConns: 1, IdleTimeout: time.Second,
			FirstByteTimeout: time.Second, WriteTimeout: time.Second, DrainTimeout: time.Second}},
		{"no backend", "Backend", Config{}},
		{"MaxConns", "MaxConns", Config{Backend: b, MaxConns: -1}},
		{"idle", "IdleTimeout", Config{Backend: b, IdleTimeout: -1}},
		{"seconds for nanoseconds", "WriteTimeout", Config{Backend: b, WriteTimeout: 5}},
		{"drain", "DrainTimeout", Config{Backend: b, DrainTimeout: -time.Second}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := New(tc.cfg)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %v, want an error about %s", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c := s.cfg; c.MaxConns == 0 || c.IdleTimeout == 0 || c.FirstByteTimeout == 0 ||
				c.WriteTimeout == 0 || c.DrainTimeout == 0 {
				t.Fatalf("%+v", c)
			}
		})
	}
}
