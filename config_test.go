package flaked

import (
	"crypto/tls"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/app"
	"github.com/flaked/flaked/internal/core/node"
)

// The errors about settings name the fields of this package.
func TestSettingsAreFields(t *testing.T) {
	for _, s := range []node.Setting{node.SettingLayout, node.SettingDatacenter, node.SettingLease,
		node.SettingConfirmTime, node.SettingOnRollback, node.SettingBorrow, node.SettingSequenceStart,
		node.SettingSegmentStart, node.SettingCluster, node.SettingHeartbeat, node.SettingReserve,
		node.SettingStartTimeout, node.SettingName, node.SettingAddress, node.SettingAdmin} {
		at := reflect.TypeFor[Config]()
		for _, name := range strings.Split(fieldName(s), ".")[1:] {
			field, ok := at.FieldByName(name)
			if !ok {
				t.Fatalf("%s has the name %s, and there is no such field", s, fieldName(s))
			}
			at = field.Type
		}
	}
}

// A field that Config.app leaves out is an option that does nothing.
func TestEveryFieldOfConfigReachesTheNode(t *testing.T) {
	made := func(c Config) app.Config {
		to, err := c.app()
		if err != nil {
			t.Fatal(err)
		}
		to.Ended()
		to.Ended = nil
		return to
	}
	for field := range reflect.TypeFor[Config]().Fields() {
		c := Config{ZooKeeper: "zk1"}
		switch v := reflect.ValueOf(&c).Elem().FieldByIndex(field.Index).Addr().Interface().(type) {
		case *string:
			*v = "other"
		case *bool:
			*v = true
			if field.Name == "InMemory" {
				c.ZooKeeper = ""
			}
		case *time.Duration:
			*v = time.Second
		case **tls.Config:
			*v = new(tls.Config)
		case **slog.Logger:
			*v = slog.New(slog.DiscardHandler)
		case *func() (string, *tls.Config):
			*v = func() (string, *tls.Config) { return "", nil }
		case *Settings:
			v.Layout = "twitter"
		default:
			t.Fatalf("Config.%s: give a value of %s here", field.Name, field.Type)
		}
		if reflect.DeepEqual(made(Config{ZooKeeper: "zk1"}), made(c)) {
			t.Errorf("Config.%s changes nothing in what the node gets", field.Name)
		}
	}
	for field := range reflect.TypeFor[Settings]().Fields() {
		var s Settings
		v := reflect.ValueOf(&s).Elem().FieldByIndex(field.Index)
		switch v.Interface().(type) {
		case string:
			v.SetString(map[string]string{
				"Layout": "twitter", "OnRollback": "refuse", "SequenceStart": "zero", "SegmentStart": "random",
			}[field.Name])
		default:
			v.Set(reflect.New(field.Type.Elem()))
		}
		none, err1 := Settings{}.parsed()
		got, err2 := s.parsed()
		if err1 != nil || err2 != nil || reflect.DeepEqual(none, got) {
			t.Errorf("Settings.%s changes nothing in the node's settings: %v, %v", field.Name, err1, err2)
		}
	}
}
