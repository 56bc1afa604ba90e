//go:build !linux && !darwin

package localcache

import "time"

// Open returns ErrSystem.
func Open(string) (*Cache, error) { return nil, ErrSystem }

// Examine returns ErrSystem.
func Examine(string) (Examination, error) { return Examination{}, ErrSystem }

// TrySync returns ErrSystem.
func (Examination) TrySync(int) ([]time.Duration, error) { return nil, ErrSystem }

// Inspect returns ErrSystem.
func (Examination) Inspect() (Loaded, error) { return Loaded{}, ErrSystem }

// Inspect returns ErrSystem.
func Inspect(string) (Loaded, error) { return Loaded{}, ErrSystem }
