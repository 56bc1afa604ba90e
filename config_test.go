package flaked

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// A field that Config.node leaves out is an option that does nothing.
func TestEveryFieldOfConfigReachesTheNode(t *testing.T) {
	// what Open uses itself, for its connections, its directory and its log
	ours := []string{"ZooKeeper", "ZooKeeperAuth", "ZooKeeperTLS", "SessionTimeout", "StateDir", "PeerAccess", "Logger",
		"HCLogger", "Settings"}
	for field := range reflect.TypeFor[Config]().Fields() {
		if !field.IsExported() || slices.Contains(ours, field.Name) {
			continue
		}
		var c Config
		switch v := reflect.ValueOf(&c).Elem().FieldByIndex(field.Index).Addr().Interface().(type) {
		case *string:
			*v = "other"
		case *bool:
			*v = true
		case *time.Duration:
			*v = time.Second
		default:
			t.Fatalf("Config.%s: give a value of %s here", field.Name, field.Type)
		}
		if reflect.DeepEqual(Config{}.node(), c.node()) {
			t.Errorf("Config.%s changes nothing in the node's configuration", field.Name)
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
