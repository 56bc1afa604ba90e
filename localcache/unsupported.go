//go:build !linux && !darwin

package localcache

import "time"

// Open returns ErrSystem.
func Open(string) (*StateFile, error) { return nil, ErrSystem }

// Examine returns ErrSystem.
func Examine(string) (Examination, error) { return Examination{}, ErrSystem }

// TrySync returns ErrSystem.
func (Examination) TrySync(int) ([]time.Duration, error) { return nil, ErrSystem }

// ReadState returns ErrSystem.
func (Examination) ReadState() (Loaded, error) { return Loaded{}, ErrSystem }

// ReadState returns ErrSystem.
func ReadState(string) (Loaded, error) { return Loaded{}, ErrSystem }

// Check returns ErrSystem.
func (*Dir) Check() error { return ErrSystem }

// CloneUnseen returns false: Open opens no directory here.
func (*Dir) CloneUnseen() bool { return false }
