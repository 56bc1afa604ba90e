package record

import (
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
)

// Settings are the parameters that an operator may change while the sequence is in use.
type Settings struct {
	// Block is the smallest block that a node takes.
	Block int64 `json:"block"`
	// SupplyMs is the time that a block should last: --hold if it is given, and 15 minutes at least.
	SupplyMs int64 `json:"supply_ms"`
	// HoldMs is the time for which a node issues without ZooKeeper: see Forever. Of an ordered sequence it is the lease
	// of the owner, which cannot change.
	HoldMs int64 `json:"hold_ms"`
	// Ceiling is the most positions that all nodes together take in a second. HardCeiling is the Ceiling with
	// which the sequence was created. Ceiling is never above it.
	Ceiling     int64 `json:"ceiling"`
	HardCeiling int64 `json:"hard_ceiling"`
}

// Forever is the longest hold. It never ends, so no clock counts it, and a node goes on with it after a boot of its
// machine, too. In return the name can never be purged, nor get a mode that rises (S18, S19).
const Forever = 100 * 365 * 24 * time.Hour

// Endless reports whether the hold is Forever.
func (s Settings) Endless() bool { return s.Hold() == Forever }

// Hold returns HoldMs as a duration.
func (s Settings) Hold() time.Duration { return time.Duration(s.HoldMs) * time.Millisecond }

// Supply returns SupplyMs as a duration.
func (s Settings) Supply() time.Duration { return time.Duration(s.SupplyMs) * time.Millisecond }

// CeilingInForce returns the ceiling in force.
func (s Settings) CeilingInForce() positions.Ceiling {
	return positions.Ceiling(min(s.Ceiling, s.HardCeiling))
}

// Check returns an error if the settings are not usable. Its text begins with the setting's name.
func (s Settings) Check() error {
	switch {
	case s.Block < positions.MinBlock || s.Block > positions.MaxBlock:
		return fmt.Errorf("block must be %d to %d values, not %d", positions.MinBlock, positions.MaxBlock, s.Block)
	case s.SupplyMs < 1:
		return errors.New("supply must be 1ms or more")
	case s.HoldMs < 1:
		return errors.New("hold must be 1ms or more")
	//mutant:s18-hold-overflows by TestSettingsCheck -> case false:
	case s.HoldMs > Forever.Milliseconds(): // a purge adds to it
		return fmt.Errorf("hold must be %s at most, which is forever", Forever)
	case s.Ceiling < 1:
		return fmt.Errorf("ceiling must be 1 or more values a second, not %d", s.Ceiling)
	case s.Ceiling > s.HardCeiling:
		return fmt.Errorf("ceiling must be at most the hard ceiling of %d values a second, with which the sequence was "+
			"created, not %d", s.HardCeiling, s.Ceiling)
	}
	return nil
}

// The bounds of the lease of an owner, and its default.
const (
	MinLease     = time.Second
	MaxLease     = time.Minute
	DefaultLease = 3 * time.Second
)
