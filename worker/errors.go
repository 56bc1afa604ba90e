package worker

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrClosed: the generator was closed, because its tenure has ended.
	ErrClosed = errors.New("this tenure has ended")
	// ErrLimit: the clock, or the borrowing ahead of it, has reached the generator's limit.
	ErrLimit = errors.New("the clock has reached the bound of this tenure")
	// ErrTimeExhausted: the layout's time field is used up.
	ErrTimeExhausted = errors.New("the layout's time field is used up")
)

// BehindError: the clock is behind the last ID, and the RollbackRule refuses to wait.
type BehindError struct {
	Behind time.Duration
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("the clock is %s behind the last ID", e.Behind)
}
