//go:build !linux && !darwin

package localcache

import "time"

// Open returns ErrSystem.
func Open(string) (*Cache, error) { return nil, ErrSystem }

// Examine returns ErrSystem.
func Examine(string) (Examination, error) { return Examination{}, ErrSystem }

// TrySync returns ErrSystem.
func TrySync(string, int) ([]time.Duration, error) { return nil, ErrSystem }

// Inspect returns ErrSystem.
func Inspect(string) (Loaded, bool, error) { return Loaded{}, false, ErrSystem }

// TakeOutOfUse returns ErrSystem.
func TakeOutOfUse(string, time.Time) (Backup, error) { return Backup{}, ErrSystem }

// ReadBackups returns ErrSystem.
func ReadBackups(string) ([]Backup, error) { return nil, ErrSystem }
